// Package flight is the flight recorder of dispatches: one row per request to
// an agent CLI, from the decision about it to its end, and sums over them.
//
// A [Record] is written when a request has been decided, denied ones included,
// and completed when it has ended. It names the correlation id, the approval,
// the job and the gate's call, so that a dispatch can be put together again
// from what is stored ([Trace]). What a prompt said is never kept but for a
// short redacted preview, which is sealed.
//
// Lists look at a bounded number of rows whatever their filter: every row has a
// class, which stands for its agent, CLI, status, policy and score. There are
// few classes, so a filter first becomes a set of them. If these are many, the
// newest rows of all have enough that match as a rule; if they are few, the
// newest rows of each are merged.
//
// The cache state (how much of what a model was given came from a cache) is
// kept as sums by minute, by conversation and by prefix hash, updated with each
// end. It has tokens, hashes and amounts, never a text.
//
// Prices are data with a date (prices.json); a cost that the CLI reported wins
// over one that is derived from them. The package decides nothing. Start
// reading at [Recorder.Decided] and [Recorder.List].
package flight
