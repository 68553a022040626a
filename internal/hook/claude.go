package hook

import (
	"github.com/go-json-experiment/json/jsontext"
)

// claude is Claude Code. Its hooks are documented; that exit code 2 blocks in
// every permission mode, and that every other failure of a hook does not, was
// found out by running it.
var claude = agent{parse: parseClaude, allow: allowClaude, ask: askClaude, later: laterClaude, rewrites: true}

// claudeEnvelope is what Claude Code sends. Codex and Grok send the same.
type claudeEnvelope struct {
	Event   string         `json:"hook_event_name"`
	Session string         `json:"session_id"`
	Dir     string         `json:"cwd"`
	Mode    string         `json:"permission_mode"`
	Tool    string         `json:"tool_name"`
	Input   jsontext.Value `json:"tool_input"`
	ID      string         `json:"tool_use_id"`
	Agent   string         `json:"agent_id"`
}

// claudeMoments are the events that say something about calls or sessions.
// The others stop nothing and are let pass.
var claudeMoments = map[string]moment{
	"PreToolUse": before, "PermissionRequest": prompt, "PostToolUse": after, "PostToolUseFailure": failed, "PermissionDenied": refused,
	"SessionStart": begin, "SessionEnd": end,
	"UserPromptSubmit": note, "Stop": note, "SubagentStart": note, "SubagentStop": note, "Notification": note, "PreCompact": note,
	"PostCompact": note, "PostToolBatch": note,
}

func parseClaude(raw []byte) (*event, error) {
	var in claudeEnvelope
	if err := read(raw, &in); err != nil {
		return nil, err
	}
	return in.event(claudeMoments), nil
}

func (in *claudeEnvelope) event(moments map[string]moment) *event {
	return &event{
		moment: moments[in.Event], name: in.Event, ref: in.Session, path: in.Agent,
		tool: in.Tool, input: in.Input, id: in.ID, dir: in.Dir,
		plan: in.Mode == "plan",
		// In the other modes the host answers its own question.
		asks: in.Mode == "default" || in.Mode == "acceptEdits",
	}
}

// claudeSpecific is the part of an answer that is about the call.
type claudeSpecific struct {
	Event    string         `json:"hookEventName"`
	Decision string         `json:"permissionDecision,omitzero"`
	Reason   string         `json:"permissionDecisionReason,omitzero"`
	Input    jsontext.Value `json:"updatedInput,omitzero"`
	Prompt   *claudePrompt  `json:"decision,omitzero"`
}

// claudePrompt answers a PermissionRequest.
type claudePrompt struct {
	Behavior string         `json:"behavior"`
	Input    jsontext.Value `json:"updatedInput,omitzero"`
	Message  string         `json:"message,omitzero"`
}

type claudeAnswer struct {
	Specific claudeSpecific `json:"hookSpecificOutput"`
}

func allowClaude(e *event, edited jsontext.Value, why string) Reply {
	out := claudeSpecific{Event: e.name}
	if e.moment == prompt {
		out.Prompt = &claudePrompt{Behavior: "allow", Input: edited}
	} else {
		out.Decision, out.Reason, out.Input = "allow", why, edited
	}
	return say(claudeAnswer{out})
}

func askClaude(e *event, why string) Reply {
	if e.moment == prompt {
		return Reply{} // it is about to ask
	}
	return say(claudeAnswer{claudeSpecific{Event: e.name, Decision: "ask", Reason: why}})
}

func laterClaude(e *event, why string) Reply {
	return say(claudeAnswer{claudeSpecific{Event: e.name, Decision: "defer", Reason: why}})
}
