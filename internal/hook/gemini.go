package hook

import "github.com/go-json-experiment/json/jsontext"

// gemini is the Gemini CLI. Its ask is held to even where it approves
// everything by itself; run headless, it ends there.
var gemini = agent{parse: parseGemini, allow: allowGemini, ask: askGemini, rewrites: true, tellsOriginal: true}

var geminiMoments = map[string]moment{
	"BeforeTool": before, "AfterTool": after, "SessionStart": begin, "SessionEnd": end,
	"BeforeAgent": note, "AfterAgent": note, "BeforeModel": note, "AfterModel": note, "Notification": note, "PreCompress": note,
}

func parseGemini(raw []byte) (*event, error) {
	var in struct {
		claudeEnvelope `json:",inline"`
		Response       struct {
			Error jsontext.Value `json:"error"`
		} `json:"tool_response"`
	}
	if err := read(raw, &in); err != nil {
		return nil, err
	}
	e := in.event(geminiMoments)
	e.asks = true // it does not say in which mode it is
	if e.moment == after && len(in.Response.Error) > 0 && in.Response.Error.Kind() != 'n' {
		e.moment = failed
	}
	return e, nil
}

type geminiAnswer struct {
	Decision string          `json:"decision"`
	Reason   string          `json:"reason,omitzero"`
	Message  string          `json:"systemMessage,omitzero"`
	Specific *geminiSpecific `json:"hookSpecificOutput,omitzero"`
}

type geminiSpecific struct {
	Event string         `json:"hookEventName"`
	Input jsontext.Value `json:"tool_input"`
}

func allowGemini(e *event, edited jsontext.Value, why string) Reply {
	out := geminiAnswer{Decision: "allow", Reason: why}
	if edited != nil {
		out.Specific = &geminiSpecific{e.name, edited}
	}
	return say(out)
}

func askGemini(_ *event, why string) Reply {
	return say(geminiAnswer{Decision: "ask", Reason: why, Message: why})
}
