package admin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"net/url"
	"strings"
	"time"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/keyring"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// Enrolment is who enrolled the first approver: the process that asked, and
// those that started it. An agent that got there first is seen in it.
type Enrolment struct {
	Process   string   `json:"process"`
	Ancestors []string `json:"ancestors,omitzero"`
}

// Enrol makes the first approver, once. After that only approvers make
// approvers. It returns the credential, which is shown once.
func (d *Desk) Enrol(ctx context.Context, name string, by Enrolment) (credential string, err error) {
	err = d.act(ctx, func(tx *store.Tx) (Act, error) {
		secret, err := d.opts.Approval.Enrol(tx, name, approval.EnrolInfo{Process: by.Process, Ancestors: by.Ancestors})
		credential = secret.Reveal()
		return Act{Name: "approver.enrol", By: name, Channel: "terminal", Subject: name, Detail: by}, err
	})
	return credential, err
}

// Enrolled says whether anyone was ever enrolled.
func (d *Desk) Enrolled(ctx context.Context) (enrolled bool, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		enrolled, err = d.opts.Approval.Enrolled(tx)
		return err
	})
	return enrolled, publicError(err)
}

// AddApprover enrols another approver and returns the credential, which is
// shown once.
func (d *Desk) AddApprover(ctx context.Context, a Actor, name string) (credential string, err error) {
	err = d.act(ctx, func(tx *store.Tx) (Act, error) {
		secret, err := d.opts.Approval.AddApprover(tx, a.Approver, name)
		credential = secret.Reveal()
		return a.act("approver.add", name, nil), err
	})
	return credential, err
}

// NewCredential makes another credential for the approver who asks; it takes
// the place of the old one and is shown once.
func (d *Desk) NewCredential(ctx context.Context, a Actor) (credential string, err error) {
	err = d.act(ctx, func(tx *store.Tx) (Act, error) {
		if err := d.fresh(tx, a); err != nil {
			return Act{}, err
		}
		secret, err := d.opts.Approval.NewCredential(tx, a.Approver, a.Approver)
		credential = secret.Reveal()
		return a.act("approver.credential", a.Approver, nil), err
	})
	return credential, err
}

// fresh refuses a console that was opened a while ago what it takes the
// credential for.
func (d *Desk) fresh(tx *store.Tx, a Actor) error {
	if a.Channel != consoleChannel {
		return nil // they came in with the credential
	}
	return d.opts.Approval.CheckFresh(tx, a.Approver, a.Cookie, a.Credential)
}

// RemoveApprover removes an approver; the last one stays.
func (d *Desk) RemoveApprover(ctx context.Context, a Actor, name string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		return a.act("approver.remove", name, nil), d.opts.Approval.RemoveApprover(tx, a.Approver, name)
	})
}

// Approvers lists the approvers.
func (d *Desk) Approvers(ctx context.Context) (out []Approver, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		list, err := d.opts.Approval.Approvers(tx)
		for _, p := range list {
			if p.Removed.IsZero() {
				out = append(out, Approver{Name: p.Name, Added: p.Added, By: p.AddedBy, TOTP: p.Factor})
			}
		}
		return err
	})
	return out, publicError(err)
}

// CheckCredential returns the approver that a credential belongs to.
func (d *Desk) CheckCredential(ctx context.Context, credential string) (name string, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		p, err := d.opts.Approval.CheckCredential(tx, credential)
		if err == nil {
			name = p.Name
		}
		return err
	})
	return name, publicError(err)
}

// Link makes a sign-in link for the console, good once.
func (d *Desk) Link(ctx context.Context, a Actor) (link string, err error) {
	err = d.act(ctx, func(tx *store.Tx) (Act, error) {
		secret, err := d.opts.Approval.NewLink(tx, a.Approver)
		link = d.signInURL(secret)
		return a.act("link.new", a.Approver, nil), err
	})
	return link, err
}

// FirstLink makes the link with which the first approver enrols and signs in.
// It lives in this process only, for ten minutes, and works once, while nobody
// was ever enrolled.
func (d *Desk) FirstLink(name string) (link string, err error) {
	secret, hash, err := keyring.Mint(keyring.SignInLink, rand.Reader)
	if err != nil {
		return "", err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.first = &firstLink{hash: hash, name: name, until: time.Now().Add(approval.LinkLife)}
	return d.signInURL(secret), nil
}

// firstLink is the way in of the first approver.
type firstLink struct {
	hash  keyring.Hash
	name  string
	until time.Time
}

// takeFirst uses the first approver's link up if the token is it.
func (d *Desk) takeFirst(token string) (name string, ok bool) {
	hash, ok := keyring.HashOf(keyring.SignInLink, token)
	if !ok {
		return "", false
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	f := d.first
	if f == nil || subtle.ConstantTimeCompare(f.hash[:], hash[:]) != 1 || time.Now().After(f.until) {
		return "", false
	}
	d.first = nil
	return f.name, true
}

func (d *Desk) signInURL(secret keyring.Secret) string {
	return d.opts.BaseURL + "/signin?token=" + url.QueryEscape(secret.Reveal())
}

// SignIn redeems a link and returns the cookie of a console. The first
// approver's link enrols them too.
func (d *Desk) SignIn(ctx context.Context, token, remote string) (cookie, approver string, expires time.Time, err error) {
	name, first := d.takeFirst(token)
	err = d.act(ctx, func(tx *store.Tx) (Act, error) {
		var secret keyring.Secret
		var console *approval.Console
		act := Act{Name: "console.signin", Channel: "console", Detail: remote}
		if first {
			act.Name = "approver.enrol"
			if _, err = d.opts.Approval.Enrol(tx, name, approval.EnrolInfo{Process: "the link on the terminal of `gatehouse up`"}); err != nil {
				return Act{}, err
			}
			secret, console, err = d.opts.Approval.SignIn(tx, name, remote)
		} else {
			secret, console, err = d.opts.Approval.RedeemLink(tx, token, remote)
		}
		if err != nil {
			return Act{}, err
		}
		cookie, approver, expires = secret.Reveal(), console.Approver, console.Opened.Add(approval.ConsoleLife)
		act.By, act.Subject = console.Approver, console.ID
		return act, nil
	})
	return cookie, approver, expires, err
}

// CheckCookie returns the approver whose console a cookie belongs to.
func (d *Desk) CheckCookie(ctx context.Context, cookie string) (approver string, err error) {
	var console *approval.Console
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		c, p, err := d.opts.Approval.CheckCookie(tx, cookie)
		if err == nil {
			console, approver = c, p.Name
		}
		return err
	})
	if err == nil && console.Touch {
		err = d.opts.Store.Write(ctx, func(tx *store.Tx) error { return d.opts.Approval.Touch(tx, console.ID) })
	}
	return approver, publicError(err)
}

// SignOut ends the console that a cookie belongs to.
func (d *Desk) SignOut(ctx context.Context, cookie string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		c, p, err := d.opts.Approval.CheckCookie(tx, cookie)
		if err != nil {
			return Act{}, err
		}
		return Act{Name: "console.signout", By: p.Name, Channel: "console", Subject: c.ID}, d.opts.Approval.SignOut(tx, c.ID)
	})
}

// BeginTOTP begins to enrol a second factor and returns what an authenticator
// needs.
func (d *Desk) BeginTOTP(ctx context.Context, a Actor) (uri, secret string, err error) {
	err = d.act(ctx, func(tx *store.Tx) (Act, error) {
		if err := d.fresh(tx, a); err != nil {
			return Act{}, err
		}
		uri, err = d.opts.Approval.EnrolFactor(tx, a.Approver, approval.Proof{})
		return a.act("totp.begin", a.Approver, nil), err
	})
	if u, perr := url.Parse(uri); perr == nil {
		secret = u.Query().Get("secret")
	}
	return uri, secret, err
}

// ConfirmTOTP finishes the enrolment with the first code.
func (d *Desk) ConfirmTOTP(ctx context.Context, a Actor, code string) error {
	if err := d.opts.Approval.ConfirmFactor(ctx, d.opts.Store, a.Approver, strings.TrimSpace(code)); err != nil {
		return publicError(err)
	}
	return d.act(ctx, func(*store.Tx) (Act, error) { return a.act("totp.confirm", a.Approver, nil), nil })
}

// AddAgent enrols an agent and returns its token, which is shown once.
func (d *Desk) AddAgent(ctx context.Context, a Actor, name string) (token string, err error) {
	err = d.act(ctx, func(tx *store.Tx) (Act, error) {
		var secret keyring.Secret
		secret, err = d.opts.Sessions.AddAgent(tx, name, a.Approver)
		token = secret.Reveal()
		return a.act("agent.add", name, nil), err
	})
	return token, err
}

// RemoveAgent removes an agent; its token is refused from then on.
func (d *Desk) RemoveAgent(ctx context.Context, a Actor, name string) error {
	return d.act(ctx, func(tx *store.Tx) (Act, error) {
		ended, err := d.opts.Sessions.RemoveAgent(tx, name, a.Approver)
		for _, s := range ended {
			if _, err := d.opts.Approval.RevokeSession(tx, s.ID, a.Approver); err != nil {
				return Act{}, err
			}
			if _, err := d.opts.Approval.CancelSession(tx, s.ID, "the agent was removed"); err != nil {
				return Act{}, err
			}
		}
		return a.act("agent.remove", name, nil), err
	})
}

// Agents lists the enrolled agents.
func (d *Desk) Agents(ctx context.Context) (out []Agent, err error) {
	err = d.opts.Store.Read(ctx, func(tx *store.Tx) error {
		list, err := d.opts.Sessions.Agents(tx)
		for _, g := range list {
			if g.Removed.IsZero() {
				out = append(out, Agent{Name: g.Name, Added: g.Added, By: g.AddedBy})
			}
		}
		return err
	})
	return out, publicError(err)
}
