// Package job runs agent CLIs as supervised processes and keeps what became
// of them: a [Spec] goes in, a durable [Job] with its output comes out.
//
// A job's start record is durable before its process runs, and nothing with a
// start record is ever run again by itself. What is not known is said to be
// unknown. A failure before the start record may be tried again; a CLI that
// keeps failing to start is left alone for a while.
//
// The process tree of a job hangs under a small supervisor (package supervise),
// which ends with the gate and takes the whole tree along. What one left because
// it was killed itself is found on the next start by process id and start time,
// and by a variable that the tree inherits.
//
// The end of a job is told as soon as it is known ([Jobs.Outcome]) and recorded
// right after ([Jobs.Recorded]).
//
// A node holds its jobs by a lease. One that cannot renew it kills its children
// before the lease ends, so that whoever calls the jobs unknown is right.
//
// What it never does: decide whether something may run, keep a prompt or a
// secret in plain text, rewrite a log, or answer that a job was cancelled while
// one of its processes lives. Start reading at [Jobs.Start], then live.go for
// a running job, hold_linux.go for its supervisor, recover.go for restarts.
package job
