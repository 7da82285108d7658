# Three ways on from one Python session. Nothing is changed: there is no import in it.
parent = Sandbox(template="python-data")
parent.run("import pandas; df = pandas.read_csv('/data.csv'); print(df.head())")

branches = []
for approach in ["fillna", "dropna", "interpolate"]:
    child = parent.fork()
    child.run(f"df_{approach} = df.{approach}(); print(df_{approach}.describe())")
    branches.append(child)

# Pick the best, throw away the rest
winner = branches[0]
for b in branches[1:]:
    b.close()
