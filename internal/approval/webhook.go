package approval

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-json-experiment/json"
)

// Format is what a webhook's receiver understands.
type Format string

// The formats of a webhook.
const (
	// Generic is the notice as JSON.
	Generic Format = "json"
	// Slack is an incoming webhook of Slack, or of what speaks its language.
	Slack Format = "slack"
	// Ntfy publishes to an ntfy topic: the last part of the URL's path.
	Ntfy Format = "ntfy"
)

// Webhook posts notices to a URL.
type Webhook struct {
	name   string
	url    *url.URL
	format Format
	header http.Header
	client *http.Client
}

// WebhookOptions describe a webhook.
type WebhookOptions struct {
	Name   string
	URL    string
	Format Format
	// Header is added to each request, for the receiver's authentication.
	Header http.Header
	// Transport replaces the default transport; nil is valid.
	Transport http.RoundTripper
}

// NewWebhook checks the options. The URL may be a secret in itself, as Slack's
// are, so that no error and no report repeats it.
func NewWebhook(opts WebhookOptions) (*Webhook, error) {
	u, err := url.Parse(opts.URL)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" {
		return nil, fmt.Errorf("%w: webhook %s needs an http or https URL", ErrInvalid, opts.Name)
	}
	w := &Webhook{name: opts.Name, url: u, format: opts.Format, header: opts.Header.Clone()}
	if w.name == "" {
		w.name = "webhook"
	}
	switch opts.Format {
	case "":
		w.format = Generic
	case Generic, Slack:
	case Ntfy:
		if strings.Trim(u.Path, "/") == "" {
			return nil, fmt.Errorf("%w: webhook %s: the path of an ntfy URL names the topic", ErrInvalid, opts.Name)
		}
	default:
		return nil, fmt.Errorf("%w: webhook %s: %q is not a format: use json, slack or ntfy", ErrInvalid, opts.Name, opts.Format)
	}
	w.client = &http.Client{Transport: opts.Transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a notice goes where the operator said, nowhere else
	}}
	return w, nil
}

// Name returns the name from the options.
func (w *Webhook) Name() string { return w.name }

// Reachable is always nil: only sending tells.
func (w *Webhook) Reachable() error { return nil }

// Send posts the notice once.
func (w *Webhook) Send(ctx context.Context, n Notice) error {
	n.clean()
	target, payload := w.payload(&n)
	body, err := json.Marshal(payload)
	if err != nil {
		return &PermanentError{Err: err}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, target, bytes.NewReader(body))
	if err != nil {
		return &PermanentError{Err: errors.New("the webhook's URL cannot be used")}
	}
	req.Header = w.header.Clone()
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "gatehouse")
	resp, err := w.client.Do(req)
	if err != nil {
		var withURL *url.Error
		if errors.As(err, &withURL) {
			err = withURL.Err
		}
		return fmt.Errorf("post: %w", err)
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10)) // so that the connection can be used again
	return judgeStatus(resp.StatusCode)
}

func judgeStatus(code int) error {
	err := fmt.Errorf("the receiver answered %d %s", code, http.StatusText(code))
	switch {
	case code >= 200 && code < 300:
		return nil
	case code == http.StatusTooManyRequests || code == http.StatusRequestTimeout || code >= 500:
		return err
	}
	return &PermanentError{Err: err}
}

// payload is what the receiver understands. Agents' words go in as plain text
// where the receiver has markup.
func (w *Webhook) payload(n *Notice) (target string, payload any) {
	type object = map[string]any
	switch w.format {
	case Slack:
		plain := func(s string) object { return object{"type": "plain_text", "text": s, "emoji": false} }
		return w.url.String(), object{
			"text": slackEscape.Replace(n.title()),
			"blocks": []object{
				{"type": "section", "text": plain(n.title() + "\n" + n.body())},
				{"type": "actions", "elements": []object{{"type": "button", "text": plain("Look at it"), "url": n.Link}}},
			},
		}
	case Ntfy:
		server := *w.url
		path := strings.TrimRight(server.Path, "/")
		i := strings.LastIndexByte(path, '/')
		server.Path, server.RawPath = path[:i+1], ""
		return server.String(), object{
			"topic": path[i+1:], "title": n.title(), "message": n.body(), "click": n.Link, "priority": 4,
			"tags": []string{"raised_hand"},
		}
	}
	event := "approval.requested"
	if n.Code != "" {
		event = "challenge.issued"
	}
	return w.url.String(), struct {
		Event string `json:"event"`
		Notice
	}{event, *n}
}

// slackEscape keeps an agent from writing <!channel> in the fallback text.
var slackEscape = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
