package dispatch

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Models are the models of a CLI as far as anybody told.
type Models struct {
	Models []string `json:"models"`
	// Source says who told of them and when.
	Source string `json:"source"`
	// Configured is what the operator's settings name, and where.
	Configured   string `json:"configured,omitzero"`
	ConfiguredIn string `json:"configuredIn,omitzero"`
	// Observed are those that answered the caller's requests of late.
	Observed []string `json:"observed,omitzero"`
	Default  string   `json:"default"`
}

// ListModels returns the models of a CLI, of all for "". None of it is a
// promise: which models there are is the providers' affair.
func (s *Service) ListModels(ctx context.Context, who call.Principal, cli string) (map[string]Models, error) {
	clis := call.CLIs()
	if cli != "" {
		if err := knownCLI(cli); err != nil {
			return nil, err
		}
		clis = []string{cli}
	}
	own, err := os.ReadFile(filepath.Join(s.opts.Dir, "models.json"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	table, err := provider.Models(string(own))
	if err != nil {
		return nil, err
	}
	var seen map[string][]string
	err = s.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		seen, err = s.opts.Flight.Models(tx, who)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := map[string]Models{}
	for _, cli := range clis {
		files, extra, err := s.template(cli)
		if err != nil {
			return nil, err
		}
		m := Models{Models: table.CLIs[cli].Models, Source: table.CLIs[cli].By, Observed: seen[cli], Default: "the CLI's own: leave model out"}
		if table.AsOf != "" {
			m.Source += " (table of " + table.AsOf + ")"
		}
		m.Configured, m.ConfiguredIn = provider.Configured(cli, s.opts.Env, extra, files)
		out[cli] = m
	}
	return out, nil
}
