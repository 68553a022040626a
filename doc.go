// Package gatehouse is the root of the module and holds no code of its own. Its
// tests are the rules that the whole tree keeps: which package may import
// which (imports_test.go), which package owns which library
// (libraries_test.go), what the deciding core must not do (core_test.go), the
// shape of the source (shape_test.go), what may not appear in any file
// (words_test.go) and the weight of the program that agents start on every
// call (hook_test.go).
//
// The rules are data at the top of each file, with the reason beside each
// entry. A failure says what to change; changing the data is a decision that a
// reviewer should see.
//
// Start reading at the README; the commands are under cmd, and
// internal/gate/gate.go is the way of one call from entry to record.
package gatehouse
