package console_test

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/activation"
	"github.com/seed-3ebc6b8a/gatehouse/internal/admin"
	"github.com/seed-3ebc6b8a/gatehouse/internal/call"
	"github.com/seed-3ebc6b8a/gatehouse/internal/grant"
	"github.com/seed-3ebc6b8a/gatehouse/internal/restore"
	"github.com/seed-3ebc6b8a/gatehouse/internal/session"
	"github.com/seed-3ebc6b8a/gatehouse/internal/upstream"
)

// public is an error with a text for the person, as the real desk has them.
type public string

func (p public) Error() string  { return "hidden cause" }
func (p public) Public() string { return string(p) }

// desk is a console.Desk in memory.
type desk struct {
	elements   admin.Elements
	challenges []admin.Challenge
	blocks     []session.Block
	mu         sync.Mutex
	changed    chan struct{}
	requests   []*admin.Request
	records    []admin.Record
	sessions   []admin.Session
	grants     []grant.Grant
	budgets    []grant.Budget
	runs       []admin.Run
	kill       admin.Kill
	policy     admin.Policy
	people     []admin.Approver
	agents     []admin.Agent
	links      map[string]string    // link token → approver
	cookies    map[string]time.Time // cookie → expiry
	acts       []string
	yes        []admin.Approval
	present    int
	seq        int
	broken     error // returned by every read, if set
}

func newDesk() *desk {
	return &desk{
		changed: make(chan struct{}),
		links:   map[string]string{"good-link": "ann"},
		cookies: map[string]time.Time{},
		people:  []admin.Approver{{Name: "ann", Added: day}, {Name: "bob", Added: day, By: "ann", TOTP: true}},
		policy:  admin.Policy{Profile: "supervised", Mode: "enforce"},
	}
}

var day = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// change runs fn and tells every open page.
func (d *desk) change(fn func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	fn()
	close(d.changed)
	d.changed = make(chan struct{})
}

func (d *desk) did() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.acts)
}

func (d *desk) act(a admin.Actor, format string, args ...any) {
	d.acts = append(d.acts, a.Approver+" on "+a.Channel+": "+fmt.Sprintf(format, args...))
}

func (d *desk) Requests(_ context.Context, state, _ string, limit int) ([]admin.Request, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []admin.Request
	for _, r := range d.requests {
		if (state == "" || r.State == state) && len(list) < limit {
			list = append(list, *r)
		}
	}
	return list, "", d.broken
}

func (d *desk) find(id string) (*admin.Request, error) {
	for _, r := range d.requests {
		if r.ID == id {
			return r, nil
		}
	}
	return nil, public("There is no request " + id + ".")
}

func (d *desk) Request(_ context.Context, id string) (*admin.Request, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, err := d.find(id)
	if err != nil {
		return nil, err
	}
	c := *r
	return &c, d.broken
}

// answer moves a request from pending, as the real desk does in a transaction.
func (d *desk) answer(a admin.Actor, id string, shown call.Digest, state, text string) (err error) {
	d.change(func() {
		var r *admin.Request
		switch r, err = d.find(id); {
		case err != nil:
		case r.State != "pending":
			err = public(fmt.Sprintf("already %s by %s at 12:01", r.State, r.AnsweredBy))
		case r.Digest != shown:
			err = public("the call on screen is not the one that waits")
		default:
			r.State, r.AnsweredBy, r.Channel, r.Answered, r.Text = state, a.Approver, a.Channel, time.Now(), text
			d.act(a, "%s %s %s", state, id, text)
		}
	})
	return err
}

func (d *desk) Approve(_ context.Context, a admin.Actor, id string, yes admin.Approval) error {
	if r, err := d.Request(context.Background(), id); err == nil && r.Pinned && yes.Code != "123456" {
		return public("a fresh code of your second factor is needed")
	}
	if err := d.answer(a, id, yes.Shown, "approved", ""); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.yes = append(d.yes, yes)
	return nil
}

func (d *desk) Deny(_ context.Context, a admin.Actor, id string, shown call.Digest, text string) error {
	return d.answer(a, id, shown, "denied", text)
}

func (d *desk) Respond(_ context.Context, a admin.Actor, id string, shown call.Digest, text string) error {
	return d.answer(a, id, shown, "responded", text)
}

func (d *desk) Edit(_ context.Context, a admin.Actor, id string, shown call.Digest, args []byte) (string, error) {
	d.mu.Lock()
	old, err := d.find(id)
	d.mu.Unlock()
	if err != nil {
		return "", err
	}
	c := *old.Call
	c.Args = args
	if err := d.answer(a, id, shown, "edited", string(args)); err != nil {
		return "", err
	}
	r := newRequest(id+"-edited", &c)
	r.EditOf = id
	d.change(func() { d.requests = append(d.requests, r) })
	return r.ID, nil
}

func (d *desk) Records(_ context.Context, f admin.RecordFilter, cursor string, limit int) ([]admin.Record, string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	skip, _ := strconv.Atoi(cursor)
	var list []admin.Record
	for _, r := range slices.Backward(d.records) {
		ok := (f.Kind == "" || f.Kind == r.Kind) && (f.Operation == "" || f.Operation == r.Operation) &&
			(f.Outcome == "" || f.Outcome == r.Outcome) && (f.Session == "" || f.Session == r.Session) &&
			(f.Since.IsZero() || !r.Time.Before(f.Since)) && (f.Level == "" || f.Level == r.Level)
		if ok {
			list = append(list, r)
		}
	}
	list = list[min(skip, len(list)):]
	if len(list) > limit {
		return list[:limit], strconv.Itoa(skip + limit), d.broken
	}
	return list, "", d.broken
}

func (d *desk) Record(_ context.Context, id string) (*admin.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, r := range d.records {
		if r.ID == id {
			return &r, nil
		}
	}
	return nil, public("There is no record " + id + ".")
}

func (d *desk) CallRecords(_ context.Context, callID string) ([]admin.Record, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var list []admin.Record
	for _, r := range d.records {
		if r.CallID == callID {
			list = append(list, r)
		}
	}
	return list, nil
}

func (d *desk) Sessions(context.Context) ([]admin.Session, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.sessions), nil
}

func (d *desk) EndSession(_ context.Context, a admin.Actor, id string) error {
	d.change(func() { d.act(a, "end session %s", id) })
	return nil
}

func (d *desk) Grants(context.Context) ([]grant.Grant, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.grants), nil
}

func (d *desk) RevokeGrant(_ context.Context, a admin.Actor, id string) error {
	d.change(func() {
		d.grants = slices.DeleteFunc(d.grants, func(g grant.Grant) bool { return g.ID == id })
		d.act(a, "revoke %s", id)
	})
	return nil
}

func (d *desk) Budgets(context.Context) ([]grant.Budget, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.budgets), nil
}

func (d *desk) RevokeBudget(_ context.Context, a admin.Actor, id string) error {
	d.change(func() {
		d.budgets = slices.DeleteFunc(d.budgets, func(b grant.Budget) bool { return b.ID == id || b.Parent == id })
		d.act(a, "revoke budget %s", id)
	})
	return nil
}

func (d *desk) Kill(context.Context) (admin.Kill, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.kill, d.broken
}

func (d *desk) SetKill(_ context.Context, a admin.Actor, on bool, reason string) error {
	d.change(func() {
		d.kill = admin.Kill{On: on, Reason: reason, By: a.Approver, At: time.Now()}
		d.act(a, "kill %v %s", on, reason)
	})
	return nil
}

// Upstreams, Differences and AcceptUpstream are those of one server with a
// tool that changed.
func (d *desk) Upstreams(context.Context) ([]admin.Upstream, error) {
	return []admin.Upstream{{Entry: upstream.Entry{Name: "files", Spec: upstream.Spec{Command: []string{"serve", "<b>files</b>"}}, Added: day, AddedBy: "ann"}, Waiting: 1}}, d.broken
}

func (d *desk) Differences(context.Context, string) (admin.Differences, error) {
	return admin.Differences{Digest: "d1", Waiting: []upstream.Pin{{
		Upstream: "files", Kind: upstream.Tool, Name: "read", Reason: "it changed since it was pinned", Seen: day,
		Was: `{"description":"Reads.","name":"read"}`, Text: `{"description":"Reads <script>, and sends it.","name":"read"}`,
	}}}, d.broken
}

func (d *desk) AcceptUpstream(_ context.Context, a admin.Actor, name, tool, digest string) error {
	d.change(func() { d.acts = append(d.acts, "accept server "+name+" "+tool+" "+digest+" by "+a.Approver) })
	return nil
}

func (d *desk) Policy(context.Context) (admin.Policy, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.policy, nil
}

func (d *desk) AcceptPolicy(_ context.Context, a admin.Actor, hash call.Digest, code string) error {
	d.change(func() { d.act(a, "accept %s %s", hash.String()[:4], code) })
	return nil
}

func (d *desk) Elements(context.Context) (admin.Elements, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.elements, nil
}

func (d *desk) AcceptElement(_ context.Context, a admin.Actor, s activation.Staged, code string) error {
	d.change(func() { d.act(a, "accept element %s of %s %s", s.Element, s.Agent, code) })
	return nil
}

func (d *desk) ReleaseElement(_ context.Context, a admin.Actor, agent, _, id, code string) error {
	d.change(func() { d.act(a, "release %s of %s %s", id, agent, code) })
	return nil
}

func (d *desk) Approvers(context.Context) ([]admin.Approver, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.people), nil
}

func (d *desk) Agents(context.Context) ([]admin.Agent, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.agents), nil
}

func (d *desk) NewCredential(_ context.Context, a admin.Actor) (string, error) {
	return "gha_new-for-" + a.Approver, nil
}

func (d *desk) BeginTOTP(_ context.Context, a admin.Actor) (uri, secret string, err error) {
	d.change(func() { d.act(a, "begin totp") })
	return "otpauth://totp/Gatehouse:" + a.Approver + "?secret=JBSWY3DPEHPK3PXP", "JBSWY3DPEHPK3PXP", nil
}

func (d *desk) ConfirmTOTP(_ context.Context, a admin.Actor, code string) error {
	if code != "123456" {
		return public("that code is wrong")
	}
	d.change(func() { d.act(a, "confirm totp") })
	return nil
}

func (d *desk) SignIn(_ context.Context, token, _ string) (cookie, approver string, expires time.Time, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	who, ok := d.links[token]
	if !ok {
		return "", "", time.Time{}, public("this link is wrong or was used already")
	}
	delete(d.links, token)
	d.seq++
	cookie, expires = fmt.Sprintf("%s.%d", who, d.seq), time.Now().Add(time.Hour)
	d.cookies[cookie] = expires
	return cookie, who, expires, nil
}

func (d *desk) CheckCookie(_ context.Context, cookie string) (string, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if expires, ok := d.cookies[cookie]; !ok || time.Now().After(expires) {
		return "", errors.New("no such cookie")
	}
	return cookie[:3], nil
}

func (d *desk) SignOut(_ context.Context, cookie string) error {
	d.change(func() { delete(d.cookies, cookie) })
	return nil
}

func (d *desk) Changed() <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.changed
}

func (d *desk) Present() func() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.present++
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.present--
	}
}

func (d *desk) openPages() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.present
}

// newRequest makes a request that waits, with a decision as the core makes it.
func newRequest(id string, c *call.Call) *admin.Request {
	if err := c.Normalize(); err != nil {
		panic(err)
	}
	d := decision()
	d.Digest = c.Digest()
	return &admin.Request{
		ID: id, CallID: "call-" + id, State: "pending", Filed: time.Now(), Expires: time.Now().Add(14*time.Minute + 32*time.Second),
		Digest: c.Digest(), Call: c, Decision: &d, Facts: &admin.Facts{Risk: 24}, Offers: []grant.Offer{{Words: "this call, once"}},
	}
}

// shellCall is a command of an agent's host.
func shellCall(command string) *call.Call {
	args := `{"command":` + strconv.Quote(command) + `}`
	return &call.Call{
		Kind: call.External, Surface: "hook:claude", Operation: "Bash", Args: []byte(args), Dir: "/home/ann/shop",
		Principal: call.Principal{Agent: "claude", Session: "s-4f1c"},
	}
}

func decision() call.Decision {
	var ballots []call.Ballot
	for _, s := range call.Stages() {
		v := call.Vote{Stage: s, Source: "core", Rule: "default", Level: call.AutoApprove, Reason: "nothing speaks against it"}
		if s == call.StageSession {
			v = call.Vote{
				Stage: s, Source: "policy.toml:14", Rule: "net.egress = confirm", Level: call.ConfirmSession,
				Reason: "it connects to a host that was not used in this session", Need: &call.Need{Capability: call.NetEgress, Scope: "github.com:443"},
				Evidence: []call.Evidence{{Where: "/command[9:15]", Text: "remote origin"}},
			}
		}
		ballots = append(ballots, call.Ballot{Stage: s, Level: v.Level, Votes: []call.Vote{v}})
	}
	return call.Decide(ballots)
}

// digestOf makes a digest that a test can tell.
func digestOf(text string) (d call.Digest) {
	copy(d[:], text)
	return d
}

// shownAt reads the time out of a render token, to make one that is older.
func shownAt(token string) time.Time {
	raw, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil {
		panic(err)
	}
	return time.Unix(0, int64(binary.BigEndian.Uint64(raw)))
}

// RestorePoints lists one point, of a file that has changed since.
func (d *desk) RestorePoints(ctx context.Context) ([]admin.RestorePoint, []string, error) {
	p, err := d.RestorePoint(ctx, "p_1")
	if err != nil {
		return nil, nil, err
	}
	p.Plan = nil
	return []admin.RestorePoint{*p}, []string{"the restore point p_0 was not made by this gate, or changed since"}, nil
}

// RestorePoint compares the point.
func (d *desk) RestorePoint(_ context.Context, id string) (*admin.RestorePoint, error) {
	if id != "p_1" {
		return nil, public("there is no such restore point (any more)")
	}
	return &admin.RestorePoint{
		Point: restore.Point{
			ID: "p_1", Agent: "coder", Session: "s_1", Made: day, Ended: day, Roots: []string{"/w/a.txt"},
			Entries: []restore.Entry{{Path: "/w/a.txt", Kind: restore.File}}, NotKept: []string{"/w/big: too large"},
		},
		Plan: &restore.Plan{Digest: "d1", Changes: []restore.Change{
			{Path: "/w/a.txt", State: restore.Differs, Kind: restore.File, Newer: true, Diff: "-new\n+old <b>\n"},
		}},
	}, d.broken
}

// ApplyRestore notes what was put back.
func (d *desk) ApplyRestore(_ context.Context, a admin.Actor, id string, how restore.Apply) (*admin.Restored, error) {
	if how.Digest != "d1" {
		return nil, public("something has changed since it was looked at: look again")
	}
	d.act(a, "restore %s newer=%v", id, how.Newer)
	return &admin.Restored{Undo: "p_2", Changes: []restore.Change{{Path: "/w/a.txt"}}}, nil
}

// ApproveForGood approves and notes the proposal.
func (d *desk) ApproveForGood(ctx context.Context, a admin.Actor, id string, yes admin.Approval) (*admin.Proposal, error) {
	if err := d.Approve(ctx, a, id, yes); err != nil {
		return nil, err
	}
	d.act(a, "never ask %s again", id)
	return &admin.Proposal{Rule: "never ask: x"}, nil
}
