package hook

import (
	"github.com/go-json-experiment/json/jsontext"
)

// copilot is GitHub Copilot: its CLI, and VS Code, which reads the same files
// and sends and takes what Claude Code does. Both are said to run an input that
// a hook changed; VS Code was not to be had for a run, so it is not given one.
var copilot = agent{parse: parseCopilot, allow: allowCopilot, ask: askCopilot, explain: explainCopilot, nameless: true, rewrites: true}

func parseCopilot(raw []byte) (*event, error) {
	var in struct {
		claudeEnvelope `json:",inline"`
		CLISession     string         `json:"sessionId"`
		CLITool        string         `json:"toolName"`
		CLIInput       jsontext.Value `json:"toolArgs"`
		Result         *struct {
			Type string `json:"resultType"`
		} `json:"toolResult"`
		Source string `json:"source"`
		Reason string `json:"reason"`
	}
	if err := read(raw, &in); err != nil {
		return nil, err
	}
	if in.Event != "" {
		e := in.event(claudeMoments)
		e.asks = true // VS Code asks unless told otherwise by its own settings
		e.fixed = true
		return e, nil
	}
	// The CLI does not name its events; what they hold tells them apart.
	input, err := unquote(in.CLIInput)
	if err != nil {
		return nil, err
	}
	e := &event{ref: in.CLISession, tool: in.CLITool, input: input, dir: in.Dir, asks: true}
	switch {
	case in.CLITool != "" && in.Result != nil && in.Result.Type != "" && in.Result.Type != "success":
		e.moment = failed
	case in.CLITool != "" && in.Result != nil:
		e.moment = after
	case in.CLITool != "":
		e.moment = before
	case in.Reason != "":
		e.moment = end
	case in.Source != "":
		e.moment = begin
	}
	return e, nil
}

type copilotAnswer struct {
	Decision string         `json:"permissionDecision"`
	Reason   string         `json:"permissionDecisionReason,omitzero"`
	Args     jsontext.Value `json:"modifiedArgs,omitzero"`
}

func allowCopilot(e *event, edited jsontext.Value, why string) Reply {
	if e.name != "" {
		return allowClaude(e, edited, why)
	}
	return say(copilotAnswer{Decision: "allow", Reason: why, Args: edited})
}

func askCopilot(e *event, why string) Reply {
	if e.name != "" {
		return askClaude(e, why)
	}
	return say(copilotAnswer{Decision: "ask", Reason: why})
}

// explainCopilot: the CLI blocks at the exit code as others do, and tells the
// model the reason that it finds on standard output. VS Code reads standard error
// then and nothing else.
func explainCopilot(why string) []byte {
	return say(copilotAnswer{Decision: "deny", Reason: why}).Stdout
}
