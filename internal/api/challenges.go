package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/autonomy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// challengeRoutes are the routes about codes, the danger zone and executions.
func challengeRoutes() []route {
	return []route{
		jsonRoute("POST", "/v1/processes", agentHalf, "Note the calling process as one that the gate answers for; it is ended when its agent is stopped", (*Server).process),

		jsonRoute("GET", "/v1/challenges", approverHalf, "What waits for a code, with the codes; who is shown them is on record", (*Server).challenges),
		jsonRoute("POST", "/v1/challenges/{id}/release", approverHalf, "Do what the challenge is about: let an execution go on, release a lock, a block or the kill switch", (*Server).releaseChallenge),
		jsonRoute("POST", "/v1/challenges/{id}/refuse", approverHalf, "Turn a challenge down; its code is void", (*Server).refuseChallenge),
		jsonRoute("GET", "/v1/danger", approverHalf, "Agents in the danger zone", (*Server).danger),
		jsonRoute("POST", "/v1/danger", approverHalf, "Block an agent and end what runs for it", (*Server).blockAgent),
		jsonRoute("POST", "/v1/danger/{id}/challenge", approverHalf, "One block, by its id or agent, with the challenge that releases it", (*Server).block),
		jsonRoute("POST", "/v1/danger/{id}/release", approverHalf, "Release an agent by the challenge bound to its block", (*Server).releaseBlock),
		jsonRoute("GET", "/v1/executions", approverHalf, "Executions of all agents", (*Server).executions),
		jsonRoute("POST", "/v1/executions/{id}/abort", approverHalf, "End an execution", (*Server).abortExecution),
	}
}

// ProcessRequest says what the calling process runs.
type ProcessRequest struct {
	What string `json:"what"`
}

// ChallengeList lists what waits for a code.
type ChallengeList struct {
	Challenges []admin.Challenge `json:"challenges"`
}

// ReleaseRequest is a person's yes to a challenge.
type ReleaseRequest struct {
	// Challenge is the code that is shown with the challenge.
	Challenge string `json:"challenge,omitzero"`
	// Code is a fresh TOTP code.
	Code string `json:"code,omitzero"`
	// All takes every active element away, not only those that lock.
	All bool `json:"all,omitzero"`
}

// BlockRequest blocks an agent.
type BlockRequest struct {
	Agent  string `json:"agent"`
	Reason string `json:"reason"`
}

// ExecutionList lists executions.
type ExecutionList struct {
	Executions []*autonomy.Execution `json:"executions"`
}

// AbortRequest names whose execution is ended.
type AbortRequest struct {
	Agent string `json:"agent"`
}

func (s *Server) process(ctx context.Context, c *caller, _ *http.Request, in *ProcessRequest) (*none, error) {
	if c.peer == nil {
		return nil, &Error{Status: http.StatusBadRequest, Text: "only a process on this machine, at the unix socket, can be noted"}
	}
	return nil, s.opts.Process(ctx, c.peer, c.agent, in.What)
}

func (s *Server) challenges(ctx context.Context, c *caller, _ *http.Request, _ *none) (*ChallengeList, error) {
	list, err := s.opts.Desk.Challenges(ctx, c.actor())
	return &ChallengeList{Challenges: list}, err
}

func (in *ReleaseRequest) release() admin.Release {
	return admin.Release{Challenge: in.Challenge, Code: in.Code, All: in.All}
}

func (s *Server) releaseChallenge(ctx context.Context, c *caller, req *http.Request, in *ReleaseRequest) (*none, error) {
	return nil, s.opts.Desk.ReleaseChallenge(ctx, c.actor(), req.PathValue("id"), in.release())
}

func (s *Server) refuseChallenge(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.RefuseChallenge(ctx, c.actor(), req.PathValue("id"))
}

func (s *Server) danger(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*admin.Danger, error) {
	d, err := s.opts.Desk.Danger(ctx)
	return &d, err
}

func (s *Server) blockAgent(ctx context.Context, c *caller, _ *http.Request, in *BlockRequest) (*session.Block, error) {
	b, err := s.opts.Desk.BlockAgent(ctx, c.actor(), in.Agent, in.Reason)
	return &b, err
}

func (s *Server) block(ctx context.Context, c *caller, req *http.Request, _ *none) (*admin.BlockView, error) {
	return s.opts.Desk.Block(ctx, c.actor(), req.PathValue("id"))
}

func (s *Server) releaseBlock(ctx context.Context, c *caller, req *http.Request, in *ReleaseRequest) (*none, error) {
	return nil, s.opts.Desk.ReleaseBlock(ctx, c.actor(), req.PathValue("id"), in.release())
}

func (s *Server) executions(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*ExecutionList, error) {
	list, err := s.opts.Desk.Executions(ctx)
	return &ExecutionList{Executions: list}, err
}

func (s *Server) abortExecution(ctx context.Context, c *caller, req *http.Request, in *AbortRequest) (*none, error) {
	return nil, s.opts.Desk.AbortExecution(ctx, c.actor(), in.Agent, req.PathValue("id"))
}
