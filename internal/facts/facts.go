package facts

import (
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
	"github.com/seed-3ebc6b8a/gatehouse/tool/declare"
)

// Severity ranks a content finding.
type Severity uint8

// The severities; the zero value is the worst.
const (
	Critical Severity = iota
	High
	Medium
	Low
)

// Finding is something content validation found in a call.
type Finding struct {
	Severity Severity
	Category string
	Rule     string
	Evidence call.Evidence
}

// Change says what a call does to policy. The zero value is the careful one:
// what was not computed counts as loosening.
type Change uint8

const (
	// MayLoosen is a change that loosens or that could not be judged.
	MayLoosen Change = iota
	// LoosensNothing is a change that was proven to loosen nothing.
	LoosensNothing
)

// DeclaredTool is a declaration that holds for a call.
type DeclaredTool struct {
	Name string       `json:"name"`
	Risk declare.Risk `json:"risk"`
	// Used says that this call uses something that the declaration grants.
	Used bool `json:"used,omitzero"`
	// Inert says that the declaration is told and not enforced.
	Inert bool `json:"inert,omitzero"`
	// Claimed says that this is the tool's own word: the gate holds no
	// declaration of it.
	Claimed bool `json:"claimed,omitzero"`
}

// Facts is what is known about a call before anyone votes on it.
type Facts struct {
	// Findings come from content validation.
	Findings []Finding
	// Workspace is the real root of the workspace, which "./" means in a
	// policy; "" takes the call's working directory for it.
	Workspace string
	// Needs are the capabilities an external call requires. An external call
	// without needs does nothing the gate can name, and is judged by Class.
	Needs []call.Need
	// Class is the shell class: safe, mutating, network, destructive,
	// unknown; "" for calls that are no commands.
	Class string
	// Commands is the canonical text of each simple command.
	Commands []string
	// Simple is what each of them comes to once the shell has read it.
	Simple []Simple
	// Partial says that not all of the command could be read: it is too long,
	// or does not parse.
	Partial bool
	// Risk runs from 0 to 100, with what it rests on.
	Risk         int
	RiskEvidence []call.Evidence
	// Irreversible calls cannot be undone.
	Irreversible bool
	// TakesCode says that an argument is code to be run. Such a call is never
	// covered by a session grant.
	TakesCode bool
	// Confined says that a sandbox of the gate's is to hold the effect to the
	// needs; without it the call must not start.
	Confined bool
	// Wrapped says that the call is to run in the gate's sandbox, around the
	// workspace and without network, which the host lets the gate arrange.
	Wrapped bool
	// Script is the text of a command line, as a shell is to run it.
	Script string
	// Taint is what the agent takes in by the call.
	Taint call.Taint
	// Outside says that the effect leaves the agent's own process tree.
	Outside bool
	// Self lists what of the gate the call reaches.
	Self []call.Evidence
	// Declared are the declarations of the tools that the call uses.
	Declared []DeclaredTool
	// ToolViolations lists what goes beyond the tool's declared policy.
	ToolViolations []call.Evidence
	// Uncommitted lists work that the call touches and that is saved nowhere
	// else; Destroys is what of it would be gone afterwards.
	Uncommitted []string
	Destroys    []string
	// Touches are the real paths that the call writes or deletes, each with
	// all below it; TouchesMore says that these may not be all.
	Touches     []string
	TouchesMore bool
	// Change is what a native call does to policy.
	Change Change
	// Loosens says in which ways it would loosen what is in force.
	Loosens []string
	// World identifies what was observed of the machine.
	World call.Digest
	// Observed lists what the world digest covers, in words.
	Observed []call.Evidence
	// Task is the request of a dispatch call, nil if it is none; TaskProblem
	// says why. Score is its risk.
	Task        *call.Task
	TaskProblem string
	Score       risk.DispatchScore
	// Words is one line that says what the call does.
	Words string
}
