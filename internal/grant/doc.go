// Package grant says what a person's answer covers.
//
// A grant discharges votes, not a level: each vote that asks must be covered
// by something the person was shown. A single-use grant is bound to the digest
// of the call, of the observed world and of the policy, and is consumed once.
// A session grant covers votes at CONFIRM_SESSION of the same session only:
// for native calls by operation and element type, for external calls by
// capability scope. It never covers a vote that asks for this very use, a
// pinned or loosening call, or an operation that takes code.
//
// [Cover] is the whole rule. [Offers] lists what a person can be offered, the
// narrowest first. The package is pure: expiry, revocation and consumption
// are judged in the transaction that uses a grant, by the database's clock;
// whoever calls Cover passes grants that are still good.
package grant
