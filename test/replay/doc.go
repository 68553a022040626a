// Command replay plays recorded agent sessions through the gate and counts
// what a person would have been asked.
//
//	go run ./test/replay                       # the sessions in testdata
//	go run ./test/replay --sessions DIR        # all *.jsonl of a folder
//	go run ./test/replay --sessions DIR -v     # every call with its answer
//
// A session is a file with one call per line, {"tool": …, "input": …}, in the
// order in which the agent made them. Each call goes through the real gate
// ([gate.Gate.Submit]) with the real policy, facts and grants; only the state
// is kept in memory and nothing runs. A scripted person answers every request
// at once with the narrowest grant that is offered for the session, or with
// this one call where none is.
//
// Two figures come out: prompts per hundred calls, and wrong auto-approvals,
// which must be none. Wrong is judged without the gate's help: by the labels
// that a session carries, or, where it has none, by an oracle that knows
// nothing but words and doubts everything (oracle.go).
//
// The machine of a recorded session is not here. So programs are taken to be
// what their names say, files to be what their paths say, and the workspace is
// read off the session. The host is taken to be one that accepts rewritten
// input, so that project code runs confined; --no-rewrite takes that away.
package main
