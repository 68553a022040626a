// Package declare is what a tool says about itself: the files it reads and
// writes, the hosts it talks to, the variables it sees, the programs it
// starts, how risky it is, when it may run, and which of its arguments are
// paths, URLs, variables or commands.
//
// A declaration is data. The same one is written in Go (package tool), in YAML
// for tools that are not written in Go ([Parse]), and appears in the
// permission manifest. The gate holds every call against it, the sandbox
// confines the process to it, and the vet checker holds the code against it.
//
// Each part of a policy is a [Stance]: unspecified (nothing was said, so
// nothing is checked, and a reviewer sees that), none, a list, or all. The zero
// value of everything is "unspecified" or "unknown", never "allowed": an unknown
// risk ranks above critical.
//
// The package does no I/O and knows neither the gate nor a database. Start
// reading at policy.go.
package declare
