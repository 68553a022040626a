package daemon

import (
	"context"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/seed-3ebc6b8a/gatehouse/internal/api"
	"github.com/seed-3ebc6b8a/gatehouse/internal/audit"
	"github.com/seed-3ebc6b8a/gatehouse/internal/store"
)

// health reports how the gate is, without anything an agent should not know.
func (d *daemon) health(ctx context.Context) api.Health {
	h := api.Health{Status: "ok", Version: d.opts.Version, Addresses: d.machine.Own.Listeners, Policy: d.book.Status().Hash}
	var err error
	if h.Enrolled, err = d.admin.Enrolled(ctx); err != nil {
		h.Problems = append(h.Problems, "the store cannot be read: "+err.Error())
	}
	if failing := d.state.problem(); failing != "" {
		h.Problems = append(h.Problems, failing)
	}
	p := d.book.Status()
	h.Problems = append(h.Problems, p.Broken...)
	if p.Staged != nil {
		h.Problems = append(h.Problems, "a policy change that loosens waits for an approver")
	}
	if len(h.Problems) > 0 {
		h.Status = "degraded"
	}
	return h
}

// metrics serves what Prometheus scrapes. Counting happens where calls are
// recorded; what is a matter of state is read when asked for.
func (d *daemon) metrics() http.Handler {
	reg := prometheus.NewRegistry()
	reg.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), d.record.counts, d.record.times,
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatehouse_requests_pending", Help: "Requests that wait for a person."}, d.pendingCount),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gatehouse_policy_broken", Help: "Policy files that do not load."},
			func() float64 { return float64(len(d.book.Status().Broken)) }),
	)
	return promhttp.HandlerFor(reg, promhttp.HandlerOpts{})
}

func (d *daemon) pendingCount() float64 {
	var n int
	err := d.store.Read(context.Background(), func(tx *store.Tx) error {
		return tx.QueryRow(`SELECT count(*) FROM approval_request WHERE state = 'pending'`).Scan(&n)
	})
	if err != nil {
		return -1 // not zero: nobody should read a failure as an empty inbox
	}
	return float64(n)
}

// sequencing says how the log is sequenced and where its checkpoints go: into
// the store, into a file beside it, and into the gate's own journal, so that
// whoever rewrites one of them is found out by another.
func (d *daemon) sequencing() audit.SequencerOptions {
	return audit.SequencerOptions{
		Keys:   d.logKeys,
		Sinks:  []audit.Sink{audit.FileSink{Path: d.opts.Place.Checkpoints()}, audit.LogSink{Logger: d.log}},
		Logger: d.log,
	}
}
