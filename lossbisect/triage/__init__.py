"""Did the newest commit move the loss? Asked without anybody asking.

Data goes one way: `suite` says which trainings, `ledger` which curve was right so far and what was acknowledged,
`bench` runs commits, `classify` turns curves into a kind (pure), `blame` turns a moved loss into the commit, and
`judge` is the order in which they are asked. A commit is blamed only after the commit before it was run again in
today's environment, and gave the old numbers there.
"""
