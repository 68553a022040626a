// Package vet holds the code of tools against what they declare.
//
// For every tool made with tool.New or tool.Process it finds out what the
// executor can reach (reading and writing files, the network, environment
// variables, other programs) and reports what the tool's policy does not
// declare, with the way there and a hint. Declaring more than is used is not
// reported: that is for whoever reviews the manifest.
//
// Calls are followed through helpers, closures, goroutines, interfaces and
// generics by a call graph (VTA) of the package, and into other packages by
// facts; at the standard library they stop, where a table (std.go) says what
// each function does. What an executor gets from its tool.Env needs no
// declaration, because it is held against the policy when it runs. Reflection,
// cgo, assembly and linkname are reported as not analysable, never passed over.
//
// A comment waives a finding, and shows up in the manifest:
//
//	//gatehouse:waive TOOL exec: calls the index builder, reviewed in #12
//
// The analyzers work with go vet -vettool (cmd/gatehouse-vet) and in any other
// driver of go/analysis. docs/tools.md lists what they cannot see. Start reading
// at analyzer.go, then reach.go.
package vet
