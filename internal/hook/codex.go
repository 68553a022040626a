package hook

import "github.com/go-json-experiment/json/jsontext"

// codex is the Codex CLI. It sends what Claude Code sends and takes less for
// an answer: a bare allow is reported as a failing hook on every call, so that
// silence is its allow, and "ask" is not understood and would let the call run.
var codex = agent{parse: parseCodex, allow: allowCodex, rewrites: true}

var codexMoments = map[string]moment{
	"PreToolUse": before, "PermissionRequest": prompt, "PostToolUse": after, "SessionStart": begin, "SessionEnd": end,
	"UserPromptSubmit": note, "Stop": note, "SubagentStart": note, "SubagentStop": note, "PreCompact": note, "PostCompact": note,
}

func parseCodex(raw []byte) (*event, error) {
	var in claudeEnvelope
	if err := read(raw, &in); err != nil {
		return nil, err
	}
	return in.event(codexMoments), nil
}

func allowCodex(e *event, edited jsontext.Value, why string) Reply {
	if edited == nil && e.moment == before {
		return Reply{}
	}
	return allowClaude(e, edited, why)
}
