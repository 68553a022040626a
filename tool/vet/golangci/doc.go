// Package golangci makes the vet checker a module plugin of golangci-lint,
// under the name gatehouse. It is a module of its own, so that a program of
// tools does not depend on a linter.
//
// golangci-lint custom builds a linter with it; see docs/tools.md. The program
// in lint is that linter, without the download. Nothing is checked here: the
// rules are package vet's.
package golangci
