package daemon

import (
	"net/url"

	"github.com/seed-3ebc6b8a/gatehouse/internal/approval"
	"github.com/seed-3ebc6b8a/gatehouse/internal/gate"
)

// Live says whether a person can be reached.
func (d *daemon) Live() bool { return d.channels.Live() }

// Changed returns a channel that is closed when a request may have changed.
func (d *daemon) Changed() <-chan struct{} { return d.changes.Wait() }

// Filed gives notice of a new request.
func (d *daemon) Filed(r *gate.Request, state gate.RequestState) {
	d.changes.Tell()
	d.notifier.Notify(approval.Notice{
		Request: state.ID, Operation: r.Call.Operation, Agent: r.Call.Principal.Agent,
		Summary: d.record.text(r.Facts.Words),
		Link:    d.baseURL + "/requests/" + url.PathEscape(state.ID),
		Expires: state.Expires,
	})
}

// newNotifier makes the senders that the policy names. One that cannot be made
// is left out, loudly: a notice is a courtesy, the request waits without it.
func (d *daemon) newNotifier() *approval.Notifier {
	var senders []approval.Sender
	for _, n := range d.book.Current().Settings.Notify {
		switch n.Kind {
		case "desktop":
			senders = append(senders, approval.NewDesktop(nil))
		case "webhook":
			w, err := approval.NewWebhook(approval.WebhookOptions{Name: "webhook", URL: n.URL, Format: approval.Format(n.Format)})
			if err != nil {
				d.log.Error("a webhook of the policy cannot be used", "error", err)
				continue
			}
			senders = append(senders, w)
		}
	}
	return approval.NewNotifier(approval.NotifierOptions{Senders: senders, Channels: d.channels, Log: d.log})
}
