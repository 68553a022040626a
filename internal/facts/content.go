package facts

import (
	"fmt"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/content"
)

// severities puts the scanner's scale on the one whose zero value is the
// worst: what is not on it counts as critical.
var severities = map[content.Severity]Severity{content.High: High, content.Medium: Medium, content.Low: Low}

// understood are the categories that the analysis of a command judges itself.
var understood = map[content.Category]bool{content.Command: true, content.Path: true}

// nul notes a NUL byte in a path or a command: where one program sees the end
// of it, another reads on. Nothing is to be asked about that.
func (x *extractor) nul(is bool, text string) {
	if is {
		x.facts.Findings = append(x.facts.Findings, Finding{
			Category: "path", Rule: "nul", Evidence: call.Evidence{Where: "args", Text: fmt.Sprintf("%q holds a NUL byte", text)},
		})
	}
}

// scan runs content validation over every string of the call.
func (x *extractor) scan() {
	found, err := content.ScanJSON(x.call.Args, nil)
	if err != nil {
		x.facts.Findings = append(x.facts.Findings, Finding{
			Category: "limit", Rule: "unreadable", Evidence: call.Evidence{Where: "args", Text: err.Error()},
		})
		return
	}
	for _, f := range found {
		shell := x.call.Kind == call.External && x.call.Operation == call.OpShell
		if (shell || x.call.Kind == call.Dispatch) && understood[f.Category] {
			// What a command does the shell analysis says, and better: here a
			// pattern cannot tell `rm -rf /` from `echo 'rm -rf /'`. The score
			// of a request reads the commands in its prompt that way.
			f.Severity = content.Low
		}
		x.facts.Findings = append(x.facts.Findings, Finding{
			Severity: severities[f.Severity], Category: string(f.Category), Rule: f.Rule,
			Evidence: call.Evidence{
				Where: fmt.Sprintf("%s[%d:%d]", f.Pointer, f.Start, f.End),
				Text:  content.Explain(f.Rule) + " (" + f.Form + ")",
			},
		})
	}
}
