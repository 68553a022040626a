package hook

import (
	"errors"

	"github.com/go-json-experiment/json/jsontext"
)

// grok is Grok's CLI. It sends Claude Code's names beside its own, and says
// when it has cut the input short. Its "ask" lets a call run when it approves
// everything, so it is not asked to ask.
var grok = agent{parse: parseGrok, allow: allowClaude, rewrites: true}

type grokEnvelope struct {
	claudeEnvelope `json:",inline"`
	Truncated      bool           `json:"toolInputTruncated"`
	Other          jsontext.Value `json:"toolInput"`
}

var (
	errTruncated = errors.New("the agent shows only part of the tool's input, and what cannot be seen cannot be judged")
	errTwoInputs = errors.New("the event holds two inputs that differ")
)

func parseGrok(raw []byte) (*event, error) {
	var in grokEnvelope
	if err := read(raw, &in); err != nil {
		return nil, err
	}
	switch {
	case in.Truncated:
		return nil, errTruncated
	case in.Other != nil && string(in.Other) != string(in.Input):
		return nil, errTwoInputs
	}
	return in.event(claudeMoments), nil
}
