package dispatch

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/flight"
	"github.com/seed-3ebc6b8a/gatehouse/internal/dispatch/provider"
	"github.com/seed-3ebc6b8a/gatehouse/internal/policy"
	"github.com/seed-3ebc6b8a/gatehouse/internal/risk"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
	"github.com/seed-3ebc6b8a/gatehouse/sandbox/changes"
)

// plan is a request with all that is known before anything is done about it.
type plan struct {
	cli     string
	task    *call.Task
	dir     string
	jobID   string
	program program
	launch  *provider.Launch
	session *Session // the one gone on with or begun by name, nil for none
	known   bool
	gated   bool
	// confined says that the run is put into a sandbox.
	confined bool
	score    risk.DispatchScore
	policy   string
	highest  int
	hash     call.Digest // of the policy
	home     string      // the CLI's own
	temp     string
	clone    string // a folder for a private clone, "" for none
	// expiring warns that a provider's cache of the conversation runs out.
	expiring *flight.Warning
}

// plan finds out everything a request needs, and changes nothing. Where that
// fails there is what was found out up to then.
func (s *Service) plan(ctx context.Context, who Caller, cli string, t *call.Task) (_ *plan, err error) {
	p := &plan{cli: cli, task: t}
	var wrong error
	p.dir, wrong = s.realDir(who, t.WorkingDir)
	snap, _ := s.opts.Policy(&call.Call{Kind: call.Dispatch, Principal: who.Principal, Dir: p.dir})
	if snap == nil {
		return p, refuse("there is no policy in force")
	}
	set := &snap.Settings.Dispatch
	p.hash, p.gated = snap.Hash, set.CLIEffects != policy.EffectsClassic
	p.confined = t.Sandbox || set.Confine
	p.policy, _ = set.Threshold(cli, who.Principal.Agent, p.dir, t.ApprovalPolicy)
	p.highest, _ = risk.Threshold(p.policy)
	p.score = risk.OfDispatch(&risk.Dispatch{
		Prompt: t.Text(), Bypass: t.Bypass(), FullAuto: t.FullAuto, Servers: t.Servers(), AllowedTools: t.AllowedTools, DisallowedTools: t.DisallowedTools,
	}, set.Profile, set.Weigh())
	if wrong != nil {
		return p, wrong
	}
	if p.program, err = s.programs.find(provider.Program(cli), s.opts.Env("PATH")); err != nil {
		return p, err
	}
	if p.jobID, err = s.opts.Jobs.NewID(); err != nil {
		return p, err
	}
	if err := s.findSession(ctx, who.Principal, p); err != nil {
		return p, err
	}
	return p, s.arrange(who.Principal, p)
}

// realDir is the directory that a request is about, without links. A request
// that is about none gets one with nothing in it, in which no agent can work.
func (s *Service) realDir(who Caller, dir string) (string, error) {
	if dir == "" {
		dir = who.Dir
	}
	if dir == "" {
		dir = filepath.Join(s.opts.Dir, "nowhere")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return "", err
		}
	}
	if !filepath.IsAbs(dir) {
		return "", refuse("workingDir must be an absolute path")
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return "", refuse("workingDir %s cannot be used", dir)
	}
	if info, err := os.Stat(real); err != nil || !info.IsDir() {
		return "", refuse("workingDir %s is no directory", dir)
	}
	return real, nil
}

// findSession finds the conversation that the request names.
func (s *Service) findSession(ctx context.Context, who call.Principal, p *plan) error {
	t := p.task
	if t.SessionID == "" && !t.ResumeLatest {
		return nil
	}
	err := s.opts.Store.Read(ctx, func(tx *store.Tx) (err error) {
		if t.ResumeLatest {
			p.session, err = s.latestSession(tx, who, p.cli)
		} else {
			p.session, err = s.session(tx, who, t.SessionID)
		}
		if err == nil {
			p.expiring, err = s.opts.Flight.Expiring(tx, who, p.session.ID, s.opts.Awareness())
		}
		return err
	})
	switch {
	case err == ErrNoSession && t.ResumeLatest:
		return refuse("resumeLatest: you have no session of %s", p.cli)
	case err == ErrNoSession && p.cli == "claude":
		p.session, err = &Session{ID: t.SessionID, CLI: p.cli, agent: who.Agent}, nil
	case err == ErrNoSession:
		return refuse("sessionId: you have no session %s of %s; session_create makes one", t.SessionID, p.cli)
	}
	if err != nil {
		return err
	}
	if p.session.CLI != p.cli {
		return refuse("sessionId: the session is one of %s", p.session.CLI)
	}
	p.known = p.session.Begun
	return nil
}

func (p *plan) sessionID() string {
	if p.session == nil || p.task.ForkSession {
		return ""
	}
	return p.session.ID
}

// arrange prepares the launch.
func (s *Service) arrange(who call.Principal, p *plan) error {
	t := *p.task
	if p.session != nil {
		t.SessionID = p.session.ID
		if p.known {
			t.SessionID = p.session.Provider
		}
	}
	id := sha256.Sum256([]byte(who.Agent))
	p.home = filepath.Join(s.opts.Dir, "homes", p.cli, hex.EncodeToString(id[:8]))
	p.temp = s.scratch(p.jobID)
	dir := p.dir
	if t.Worktree {
		p.clone = filepath.Join(s.opts.Dir, "clones", p.jobID)
		dir = filepath.Join(p.clone, "repo")
	}
	template, extra, err := s.template(p.cli)
	if err != nil {
		return err
	}
	servers, err := s.servers()
	if err != nil {
		return err
	}
	p.launch, err = provider.Prepare(&provider.Input{
		CLI: p.cli, Task: &t, Gated: p.gated, Confined: p.confined, Binary: p.program.path, Dir: dir, Home: p.home, Temp: p.temp,
		Env: s.opts.Env, Extra: extra, Known: p.known, Template: template, Servers: servers, Hook: s.opts.Hook,
	})
	if err != nil {
		return err
	}
	s.logins(p)
	return nil
}

// template reads the operator's own files for a CLI: what lies in
// cli/NAME below the folder, and the variables in cli/NAME.env.
func (s *Service) template(cli string) (files map[string]string, env []string, err error) {
	root := filepath.Join(s.opts.Dir, "cli", cli)
	files = map[string]string{}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		files[name] = string(data)
		return err
	})
	if err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	data, err := os.ReadFile(root + ".env")
	if err != nil && !os.IsNotExist(err) {
		return nil, nil, err
	}
	for line := range bytes.Lines(data) {
		if text := strings.TrimSpace(string(line)); text != "" && !strings.HasPrefix(text, "#") && strings.Contains(text, "=") {
			env = append(env, text)
		}
	}
	return files, env, nil
}

// servers reads the operator's MCP servers: mcp.json, in the form that hosts
// have for it.
func (s *Service) servers() (map[string]string, error) {
	data, err := os.ReadFile(filepath.Join(s.opts.Dir, "mcp.json"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var file struct {
		Servers map[string]jsontext.Value `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, refuse("the operator's mcp.json cannot be read: %v", err)
	}
	out := map[string]string{}
	for name, v := range file.Servers {
		out[name] = string(v)
	}
	return out, nil
}

// logins hands the user's logins on to the CLI's own home.
func (s *Service) logins(p *plan) {
	for _, l := range provider.Logins(p.cli) {
		data, err := os.ReadFile(filepath.Join(s.opts.UserHome, l[0]))
		if err == nil && s.opts.UserHome != "" {
			p.launch.Files[filepath.Join(p.home, l[1])] = string(data)
		}
	}
}

// call is the request as the gate decides it.
func (p *plan) call(who Caller) (*call.Call, error) {
	args, err := p.task.Args()
	if err != nil {
		return nil, err
	}
	return &call.Call{
		Kind: call.Dispatch, Surface: who.Surface, Principal: who.Principal, Held: who.Held, Operation: call.RequestOperation(p.cli),
		Args: args, Dir: p.dir, Correlation: p.task.CorrelationID,
		Forward: []call.Field{
			{Name: "program", Value: p.program.path + " sha256:" + p.program.sum},
			{Name: "cli_effects", Value: map[bool]string{true: policy.EffectsGated, false: policy.EffectsClassic}[p.gated]},
			{Name: "confined", Value: fmt.Sprint(p.confined)},
			{Name: "session", Value: fmt.Sprint(p.sessionID(), " resumed ", p.known)},
		},
	}, nil
}

// requestKey is what equal requests have in common: who asks, what for, with
// which program, environment and policy, and the state of the files. A request
// that goes on with a conversation has none: no two of them are equal.
func (s *Service) requestKey(p *plan, c *call.Call) string {
	if p.known || p.task.Worktree {
		return ""
	}
	state, err := stateOf(p.dir)
	if err != nil {
		return "" // not to be told apart is not to be equal
	}
	h := sha256.New()
	write(h, "gatehouse/request/1", p.cli, c.Principal.Agent, string(c.Args), p.dir, p.program.path, p.program.sum, p.hash.String(), state, fmt.Sprint(p.gated, p.confined))
	write(h, slices.Sorted(slices.Values(p.stableEnv()))...)
	return hex.EncodeToString(h.Sum(nil))
}

// stableEnv is the environment without what is another in every run.
func (p *plan) stableEnv() (out []string) {
	for _, e := range p.launch.Env {
		if !strings.HasPrefix(e, "TMPDIR=") {
			out = append(out, e)
		}
	}
	return out
}

// write makes the folders and files of the launch, readable by nobody else.
func (p *plan) write(ctx context.Context) error {
	if err := os.MkdirAll(p.home, 0o700); err != nil {
		return err
	}
	if err := os.Mkdir(p.temp, 0o700); err != nil {
		return err
	}
	for _, path := range slices.Sorted(maps.Keys(p.launch.Files)) {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		// Another run may read the file now: it is put in place whole.
		next := path + "." + p.jobID
		if err := os.WriteFile(next, []byte(p.launch.Files[path]), 0o600); err != nil {
			return err
		}
		if err := os.Rename(next, path); err != nil {
			return err
		}
	}
	if p.launch.Before != nil {
		if err := p.launch.Before(); err != nil {
			return err
		}
	}
	if p.clone == "" {
		return nil
	}
	if err := os.MkdirAll(p.clone, 0o700); err != nil {
		return err
	}
	if _, err := changes.NewClone(ctx, p.dir, p.clone); err != nil {
		return refuse("worktree: a private clone of %s cannot be made: %v", p.dir, err)
	}
	return nil
}

// clean removes what was of the run alone.
func (p *plan) clean(log *slog.Logger) {
	if err := os.RemoveAll(p.temp); err != nil {
		log.Warn("the files of a run could not be removed", "error", err)
	}
}

// program is a CLI's program, resolved to one file.
type program struct{ path, sum string }

// programs remembers what was resolved: each name once, to an absolute file. Its
// hash is taken again when the file has changed, so that what is on record is
// what runs.
type programs struct {
	mu    sync.Mutex
	found map[string]program
	seen  map[string]string // the stamp of the file that was hashed
}

func (p *programs) find(name, path string) (program, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f, known := p.found[name]
	if !known {
		file, err := look(name, path)
		if err != nil {
			return program{}, err
		}
		f.path = file
	}
	info, err := os.Stat(f.path)
	if err != nil {
		return program{}, refuse("%s is not where it was", name)
	}
	h := sha256.New()
	stamp(h, info)
	now := hex.EncodeToString(h.Sum(nil))
	if !known || p.seen[name] != now {
		if f.sum, err = hashFile(f.path); err != nil {
			return program{}, refuse("%s cannot be read", name)
		}
		p.found[name], p.seen[name] = f, now
	}
	return f, nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	_, err = io.Copy(h, f)
	return hex.EncodeToString(h.Sum(nil)), err
}

// look finds a program in the gate's own PATH, never in the working directory.
func look(name, path string) (string, error) {
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		if _, err := exec.LookPath(file); err == nil {
			return file, nil
		}
	}
	return "", refuse("the CLI %s is not installed where the gate looks for programs", name)
}
