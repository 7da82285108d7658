"""Fails when the product is slower than its promise beside the bare engine."""
import json
import sys

RATIO_MAX = 1.15

report = json.load(open(sys.argv[1], encoding="utf-8"))
ratio = report["ratio_p50"]
print(f"bench: product {report['product']['p50_ms']} ms, bare {report['bare']['p50_ms']} ms, ratio {ratio}")
if ratio > RATIO_MAX:
    sys.exit(f"ratio_p50 {ratio} is above {RATIO_MAX}")
