package api

import (
	"context"
	"net/http"

	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
)

// addApprover enrols an approver. It is the one route of the approver half
// that works without a credential, once: while nobody was ever enrolled, for
// a process on this machine, at the unix socket. The record names that
// process and those that started it.
func (s *Server) addApprover(w http.ResponseWriter, req *http.Request, _ *caller) error {
	in := new(NameRequest)
	if err := readJSON(w, req, in); err != nil {
		return err
	}
	ctx := req.Context()
	if req.Header.Get("Authorization") == "" {
		peer := peerOf(ctx)
		if peer == nil {
			return errNoCredential
		}
		if held(peer) {
			// Where agents are held, the first approver is the administrator's
			// choice: whoever comes first could be an agent.
			return errEnrolHeld
		}
		secret, err := s.opts.Desk.Enrol(ctx, in.Name, admin.Enrolment{
			Process:   peer.Chain[0].String(),
			Ancestors: ancestors(peer),
		})
		if err != nil {
			return err
		}
		return writeJSON(w, http.StatusOK, &SecretResponse{Name: in.Name, Secret: secret})
	}
	c, err := s.identify(req, approverHalf)
	if err != nil {
		return err
	}
	secret, err := s.opts.Desk.AddApprover(ctx, c.actor(), in.Name)
	if err != nil {
		return err
	}
	return writeJSON(w, http.StatusOK, &SecretResponse{Name: in.Name, Secret: secret})
}

func ancestors(peer *session.Peer) []string {
	var out []string
	for _, p := range peer.Chain[1:] {
		out = append(out, p.String())
	}
	return out
}

func (s *Server) approvers(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*ApproverList, error) {
	list, err := s.opts.Desk.Approvers(ctx)
	return &ApproverList{Approvers: list}, err
}

func (s *Server) removeApprover(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.RemoveApprover(ctx, c.actor(), req.PathValue("name"))
}

func (s *Server) link(ctx context.Context, c *caller, _ *http.Request, _ *none) (*LinkResponse, error) {
	url, err := s.opts.Desk.Link(ctx, c.actor())
	return &LinkResponse{URL: url}, err
}

func (s *Server) beginTOTP(ctx context.Context, c *caller, _ *http.Request, _ *none) (*TOTPResponse, error) {
	uri, secret, err := s.opts.Desk.BeginTOTP(ctx, c.actor())
	return &TOTPResponse{URI: uri, Secret: secret}, err
}

func (s *Server) confirmTOTP(ctx context.Context, c *caller, _ *http.Request, in *CodeRequest) (*none, error) {
	return nil, s.opts.Desk.ConfirmTOTP(ctx, c.actor(), in.Code)
}

func (s *Server) addAgent(ctx context.Context, c *caller, _ *http.Request, in *NameRequest) (*SecretResponse, error) {
	token, err := s.opts.Desk.AddAgent(ctx, c.actor(), in.Name)
	return &SecretResponse{Name: in.Name, Secret: token}, err
}

func (s *Server) agents(ctx context.Context, _ *caller, _ *http.Request, _ *none) (*AgentList, error) {
	list, err := s.opts.Desk.Agents(ctx)
	return &AgentList{Agents: list}, err
}

func (s *Server) removeAgent(ctx context.Context, c *caller, req *http.Request, _ *none) (*none, error) {
	return nil, s.opts.Desk.RemoveAgent(ctx, c.actor(), req.PathValue("name"))
}
