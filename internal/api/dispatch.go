package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
)

// ToolCaller is who calls a tool of dispatch.
type ToolCaller struct {
	Principal call.Principal
	Held      bool
	Surface   string
	// Dir is the caller's working directory.
	Dir string
}

// ToolRequest calls a tool of dispatch. The arguments are those that the MCP
// tool of the same name takes.
type ToolRequest struct {
	Args    jsontext.Value `json:"args,omitzero"`
	Dir     string         `json:"dir,omitzero"`
	Session string         `json:"session,omitzero"`
}

// ToolResponse is what the tool answers.
type ToolResponse struct {
	Answer jsontext.Value `json:"answer"`
}

func dispatchRoutes() []route {
	return []route{
		jsonRoute("POST", "/v1/tools/{name}", agentHalf,
			"Call a tool of dispatch: claude_request, llm_job_status, session_list, approval_list, review and the others that /mcp lists", (*Server).tool),
		jsonRoute("POST", "/v1/operator/{name}", approverHalf,
			"The tools about jobs and decisions, over those of every agent: llm_job_list, llm_job_status, llm_job_watch, llm_job_result, llm_job_cancel, llm_request_result, approval_list, dispatch_trace", (*Server).operatorTool),
	}
}

func (s *Server) tool(ctx context.Context, c *caller, req *http.Request, in *ToolRequest) (*ToolResponse, error) {
	if s.opts.Tools == nil {
		return nil, &Error{Status: http.StatusNotFound, Text: "this gate hands no requests to agent CLIs"}
	}
	id, err := c.own(in.Session)
	if err != nil {
		return nil, err
	}
	session, err := s.opts.Doors.Session(ctx, SessionAsk{Agent: c.agent, TokenID: c.tokenID, Peer: c.peer, ID: id, Workspace: in.Dir, Surface: c.surface})
	if err != nil {
		return nil, err
	}
	who := &ToolCaller{Principal: call.Principal{Agent: c.agent, Session: session}, Held: held(c.peer), Surface: c.surface, Dir: in.Dir}
	answer, err := s.opts.Tools(ctx, who, req.PathValue("name"), in.Args)
	if err != nil {
		return nil, &Error{Status: http.StatusUnprocessableEntity, Text: err.Error(), cause: err}
	}
	return &ToolResponse{Answer: answer}, nil
}

// operatorTools are the tools that a person uses over every agent's jobs.
var operatorTools = []string{"llm_job_list", "llm_job_status", "llm_job_watch", "llm_job_result", "llm_job_cancel", "llm_request_result", "approval_list", "dispatch_trace"}

func (s *Server) operatorTool(ctx context.Context, c *caller, req *http.Request, in *ToolRequest) (*ToolResponse, error) {
	name := req.PathValue("name")
	if s.opts.Tools == nil || !slices.Contains(operatorTools, name) {
		return nil, &Error{Status: http.StatusNotFound, Text: "there is no such tool for operators", Hint: "use one of " + strings.Join(operatorTools, ", ")}
	}
	if name == "llm_job_cancel" { // an act of a person, so it is on record who did it
		if err := s.cancelRun(ctx, c.actor(), in.Args); err != nil {
			return nil, err
		}
	}
	answer, err := s.opts.Tools(ctx, &ToolCaller{Principal: everyone, Surface: "api"}, name, in.Args)
	if err != nil {
		return nil, &Error{Status: http.StatusUnprocessableEntity, Text: err.Error(), cause: err}
	}
	return &ToolResponse{Answer: answer}, nil
}

// cancelRun ends a run for a person. That the arguments are as they should be
// is for the tool to say.
func (s *Server) cancelRun(ctx context.Context, a admin.Actor, args jsontext.Value) error {
	var in struct {
		JobID string `json:"jobId"`
	}
	if json.Unmarshal(args, &in) != nil || in.JobID == "" {
		return nil
	}
	return s.opts.Desk.CancelRun(ctx, a, in.JobID)
}

// everyone is whom an operator stands for; no agent can have the name.
var everyone = call.Principal{Agent: "*"}
