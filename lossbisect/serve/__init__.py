"""What is stored as a small site to read: histories, triages, bisects while they run, runs.

`web` is the HTTP server and knows nothing of what it serves. `site` says which page an address is. `stock` is what
there is, `watch` what there is of bisects while they run. `lists` and `bisects` make those pages that no command makes
as a file. Nothing is ever written.
"""
