package facts

import (
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/shell"
)

// inputFields are the arguments that hold text for a running process.
var inputFields = map[string]bool{"chars": true, "input": true, "text": true, "data": true, "command": true, "keys": true}

// input describes text for something that runs already: code of whatever reads
// it. Which that is no host says, so it is looked at as the code of all of
// them, and is never covered by a grant for the session.
func (x *extractor) input(strs []String) {
	x.unknown("sends input to a running process", true)
	for _, s := range strs {
		if s.Key || !inputFields[s.Name] || s.Text == "" {
			continue
		}
		a := shell.AnalyzeInput(s.Text, shell.TargetUnknown, shell.Options{Home: x.base.Home, Knowledge: x.opts.Knowledge})
		x.facts.Irreversible = x.facts.Irreversible || a.Irreversible()
		x.facts.Class, x.facts.Words = a.Class.String(), "sends input to a running process: "+a.Words()
		at := call.Evidence{Where: s.Where, Text: s.Text}
		a.Effects(func(c *shell.Command, e *shell.Effect) bool {
			x.effect(c, e, at)
			return true
		})
		x.need(call.ProcExec, "", at)
	}
}
