package hook

import "github.com/go-json-experiment/json/jsontext"

// gemini is the Gemini CLI. It does hold to "ask", and where nobody sits in
// front of it waits for ever; it does not say whether somebody does, so it is
// not asked to ask.
var gemini = agent{parse: parseGemini, allow: allowGemini, rewrites: true}

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
	if e.moment == after && len(in.Response.Error) > 0 && in.Response.Error.Kind() != 'n' {
		e.moment = failed
	}
	return e, nil
}

type geminiAnswer struct {
	Decision string          `json:"decision"`
	Reason   string          `json:"reason,omitzero"`
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
