"""The second disk of a lab machine: what is run on it, and the results that it leaves there."""
import shutil
import subprocess
from pathlib import Path

import host

# With 8 GiB the daemon's own check of free disk refused the third sandbox.
PAYLOAD_BYTES = 20 << 30
READ_SECONDS_MAX = 300
# e2fsck: 1 says that it repaired something, as after a machine that was ended.
REPAIRED = 1


def make(image: Path, staging: Path, files: dict[str, Path]) -> None:
    """Writes an image with these files and directories, each at a path below its root."""
    staging.mkdir()
    for target, source in files.items():
        place = staging / target
        place.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            # Links cost nothing; on another file system it is a copy.
            shutil.copytree(source, place, symlinks=True, copy_function=link_or_copy)
        else:
            shutil.copy2(source, place)
    host.file_system(staging, image, PAYLOAD_BYTES, "lab")
    shutil.rmtree(staging)


def link_or_copy(source: str, target: str) -> None:
    try:
        Path(target).hardlink_to(source)
    except OSError:
        shutil.copy2(source, target)


def bring_back(image: Path, to: Path) -> None:
    """Copies the results out. The machine is off."""
    check = subprocess.run(["e2fsck", "-fy", str(image)], capture_output=True, timeout=READ_SECONDS_MAX)
    if check.returncode & ~REPAIRED:
        raise RuntimeError(f"the lab's disk cannot be repaired: {check.stdout.decode(errors='replace')}")
    to.mkdir(parents=True, exist_ok=True)
    subprocess.run(["debugfs", "-R", f"rdump /results {to}", str(image)], check=True,
                   capture_output=True, timeout=READ_SECONDS_MAX)
    # They come with the directory that they are in; beside the console they are easier to find.
    for found in list((to / "results").iterdir()) if (to / "results").exists() else []:
        found.rename(to / found.name)
    shutil.rmtree(to / "results", ignore_errors=True)
