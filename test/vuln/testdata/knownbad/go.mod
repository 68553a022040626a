module example.com/knownbad

go 1.21

require golang.org/x/net v0.20.0
