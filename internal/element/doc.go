// Package element resolves the policies that active elements carry.
//
// An element (persona, skill, template, agent, memory, ensemble) may list
// operations it allows, confirms or denies and the element types it stays
// within. [Compile] turns the active elements of one principal and workspace
// into a [Set]; [Set.Resolve] answers what they say about one operation.
//
// Precedence is deny > confirm > allow > base, whatever the order of the
// elements. A confirm joins and never lowers. An allow lowers the base of an
// elevatable operation and nothing else: neither another element's confirm
// nor a pinned operation. The recovery path is out of reach of every list;
// that is enforced here, in the resolver, and not in whoever reads the files.
//
// All the work is done when the set is compiled: resolving is one look-up
// that returns a shared ballot, so that a thousand active elements cost a
// decision no more than ten.
//
// The package does no I/O and never reports a problem by leaving a policy
// out: an element whose policy did not load is quarantined, and everything
// beyond a read is denied while it is active.
package element
