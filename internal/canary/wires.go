package canary

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// messages speaks Anthropic's wire: Claude Code, and Grok when told to.
func (m *Model) messages(w http.ResponseWriter, req *http.Request) {
	var in struct {
		Model  string `json:"model"`
		Stream bool   `json:"stream"`
		Tools  []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Turns []struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"messages"`
	}
	if !receive(w, req, &in) {
		return
	}
	var offered, results, prompts []string
	for _, t := range in.Tools {
		offered = append(offered, t.Name)
	}
	for _, turn := range in.Turns {
		if turn.Role == "user" {
			prompts = append(prompts, text(turn.Content))
		}
		var blocks []struct {
			Type    string         `json:"type"`
			Content jsontext.Value `json:"content"`
		}
		if json.Unmarshal(turn.Content, &blocks) != nil {
			continue // plain text
		}
		for _, b := range blocks {
			if b.Type == "tool_result" {
				results = append(results, text(b.Content))
			}
		}
	}
	step, n := m.turn(offered, results, prompts)
	content, stop := []object{{"type": "text", "text": final}}, "end_turn"
	if step != nil {
		stop = "tool_use"
		content = []object{{"type": "tool_use", "id": m.id("toolu", n), "name": step.Tool, "input": step.Input}}
	}
	usage := object{"input_tokens": 1, "output_tokens": 1}
	message := object{"id": fmt.Sprintf("msg_%d", n), "type": "message", "role": "assistant", "model": in.Model, "usage": usage,
		"content": content, "stop_reason": stop, "stop_sequence": nil}
	if !in.Stream {
		w.Header().Set("Content-Type", "application/json")
		_ = json.MarshalWrite(w, message) // a host that hangs up learns nothing
		return
	}
	out := newStream(w)
	message["content"], message["stop_reason"] = []object{}, nil
	out.send("message_start", object{"type": "message_start", "message": message})
	block, delta := content[0], object{"type": "text_delta", "text": final}
	if step != nil {
		block, delta = copyOf(block, "input", object{}), object{"type": "input_json_delta", "partial_json": string(step.Input)}
	} else {
		block = copyOf(block, "text", "")
	}
	out.send("content_block_start", object{"type": "content_block_start", "index": 0, "content_block": block})
	out.send("content_block_delta", object{"type": "content_block_delta", "index": 0, "delta": delta})
	out.send("content_block_stop", object{"type": "content_block_stop", "index": 0})
	out.send("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": stop, "stop_sequence": nil}, "usage": usage})
	out.send("message_stop", object{"type": "message_stop"})
}

func copyOf(o object, name string, value any) object {
	out := object{}
	for k, v := range o {
		out[k] = v
	}
	out[name] = value
	return out
}

// responses speaks OpenAI's wire: Codex.
func (m *Model) responses(w http.ResponseWriter, req *http.Request) {
	var in struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
		Input []struct {
			Type    string         `json:"type"`
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
			Output  jsontext.Value `json:"output"`
		} `json:"input"`
	}
	if !receive(w, req, &in) {
		return
	}
	var offered, results, prompts []string
	for _, t := range in.Tools {
		offered = append(offered, t.Name)
	}
	for _, i := range in.Input {
		if i.Role == "user" {
			prompts = append(prompts, text(i.Content))
		}
		if strings.HasSuffix(i.Type, "_call_output") {
			results = append(results, text(i.Output))
		}
	}
	step, n := m.turn(offered, results, prompts)
	item := object{"type": "message", "id": fmt.Sprintf("msg_%d", n), "role": "assistant",
		"content": []object{{"type": "output_text", "text": final}}}
	if step != nil {
		item = object{"type": "function_call", "id": fmt.Sprintf("fc_%d", n), "call_id": m.id("call", n),
			"name": step.Tool, "arguments": string(step.Input)}
	}
	response := object{"id": fmt.Sprintf("resp_%d", n), "object": "response", "status": "in_progress", "output": []object{}}
	out := newStream(w)
	out.send("response.created", object{"type": "response.created", "response": response})
	out.send("response.output_item.added", object{"type": "response.output_item.added", "output_index": 0, "item": item})
	out.send("response.output_item.done", object{"type": "response.output_item.done", "output_index": 0, "item": item})
	response["status"], response["output"] = "completed", []object{item}
	response["usage"] = object{"input_tokens": 1, "input_tokens_details": object{"cached_tokens": 0}, "output_tokens": 1,
		"output_tokens_details": object{"reasoning_tokens": 0}, "total_tokens": 2}
	out.send("response.completed", object{"type": "response.completed", "response": response})
}

// generate speaks Gemini's wire.
func (m *Model) generate(w http.ResponseWriter, req *http.Request) {
	if strings.HasSuffix(req.PathValue("call"), ":countTokens") {
		fixed(`{"totalTokens":42}`)(w, req)
		return
	}
	var in struct {
		Tools []struct {
			Functions []struct {
				Name string `json:"name"`
			} `json:"functionDeclarations"`
		} `json:"tools"`
		Contents []struct {
			Role  string `json:"role"`
			Parts []struct {
				Text     string `json:"text"`
				Response *struct {
					Response jsontext.Value `json:"response"`
				} `json:"functionResponse"`
			} `json:"parts"`
		} `json:"contents"`
		Config struct {
			Type string `json:"responseMimeType"`
		} `json:"generationConfig"`
	}
	if !receive(w, req, &in) {
		return
	}
	var offered, results, prompts []string
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			offered = append(offered, f.Name)
		}
	}
	for _, c := range in.Contents {
		for _, p := range c.Parts {
			if c.Role == "user" && p.Text != "" {
				prompts = append(prompts, p.Text)
			}
			if p.Response != nil {
				results = append(results, string(p.Response.Response))
			}
		}
	}
	part := object{"text": final}
	if in.Config.Type == "application/json" {
		// The CLI asks a small model which large one to take, and who is next.
		part["text"] = `{"model_choice":"flash","reasoning":"-","complexity_score":1,"complexity_reasoning":"-","next_speaker":"user"}`
	} else if step, _ := m.turn(offered, results, prompts); step != nil {
		part = object{"functionCall": object{"name": step.Tool, "args": step.Input}}
	}
	answer := object{
		"candidates":    []object{{"content": object{"role": "model", "parts": []object{part}}, "finishReason": "STOP", "index": 0}},
		"usageMetadata": object{"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}, "modelVersion": "scripted",
	}
	if strings.HasSuffix(req.PathValue("call"), ":streamGenerateContent") {
		newStream(w).send("", answer)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.MarshalWrite(w, answer) // a host that hangs up learns nothing
}

// chat speaks the older wire of OpenAI's, which Vibe knows.
func (m *Model) chat(w http.ResponseWriter, req *http.Request) {
	var in struct {
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
		Messages []struct {
			Role    string         `json:"role"`
			Content jsontext.Value `json:"content"`
		} `json:"messages"`
	}
	if !receive(w, req, &in) {
		return
	}
	var offered, results, prompts []string
	for _, t := range in.Tools {
		offered = append(offered, t.Function.Name)
	}
	for _, msg := range in.Messages {
		switch msg.Role {
		case "tool":
			results = append(results, text(msg.Content))
		case "user":
			prompts = append(prompts, text(msg.Content))
		}
	}
	step, n := m.turn(offered, results, prompts)
	message, stop := object{"role": "assistant", "content": final}, "stop"
	if step != nil {
		call := object{"id": m.id("call", n), "type": "function", "function": object{"name": step.Tool, "arguments": string(step.Input)}}
		message, stop = object{"role": "assistant", "content": "", "tool_calls": []object{call}}, "tool_calls"
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.MarshalWrite(w, object{ // a host that hangs up learns nothing
		"id": fmt.Sprintf("chat_%d", n), "object": "chat.completion", "choices": []object{{"index": 0, "message": message, "finish_reason": stop}},
		"usage": object{"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
	})
}
