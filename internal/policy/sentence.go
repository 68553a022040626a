package policy

import (
	"fmt"
	"strings"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// phrase says a capability in words, without and with a scope.
type phrase struct{ plain, scoped string }

var phrases = map[call.Capability]phrase{
	call.FSRead:        {"read files", "read %s"},
	call.FSWrite:       {"write files", "write %s"},
	call.FSDelete:      {"delete files", "delete %s"},
	call.NetEgress:     {"connect to other machines", "connect to %s"},
	call.ProcExec:      {"run programs", "run %s"},
	call.DataUser:      {"use personal data", "use personal data in %s"},
	call.SecretsAccess: {"use secrets", "use secrets in %s"},
}

// classPhrases say what agents do who run a command of a class.
var classPhrases = map[string]string{
	classSafe:        "run commands that only look",
	classMutating:    "run commands that change files",
	classNetwork:     "run commands that reach the network",
	classDestructive: "run commands that destroy",
	classUnknown:     "run what cannot be seen through",
}

// Sentence says a need in words, to follow "may" or "wants to": "write files
// under ./src".
func (s *Snapshot) Sentence(n call.Need) string {
	return sentence(n.Capability, n.Scope, s.Settings.Capabilities)
}

func sentence(c call.Capability, scope string, defs map[call.Capability]CapabilityDef) string {
	p, ok := phrases[c]
	if !ok {
		p.plain = string(c)
		if def := defs[c]; def.Sentence != "" {
			p.plain = def.Sentence
		}
		p.scoped = p.plain + " (%s)"
	}
	if scope == "" {
		return p.plain
	}
	if dir, tree := strings.CutSuffix(scope, "/**"); tree && scopeKind(c, scope) == kindPath {
		switch {
		case dir == ".":
			scope = "files in the workspace"
		case dir == "":
			scope = "any file"
		case dir == "**":
		default:
			scope = "files under " + dir
		}
	}
	return fmt.Sprintf(p.scoped, scope)
}

// levelPhrases say what a level means for what follows.
var levelPhrases = map[call.Level]string{
	call.AutoApprove:      "lets agents %s",
	call.ConfirmSession:   "asks once per session before agents %s",
	call.ConfirmSingleUse: "asks every time before agents %s",
	call.Deny:             "does not let agents %s",
}

// says is the reason of a profile's vote.
func says(profile string, level call.Level, what string) string {
	return "the profile " + profile + " " + fmt.Sprintf(levelPhrases[level], what)
}
