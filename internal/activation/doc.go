// Package activation keeps which elements are in force for whom.
//
// The files are in package library; what is in force is in the store, as it
// was accepted, so that a file that changes behind the gate's back changes
// nothing by itself. [Keeper.Follow] compares the two: a change that loosens
// nothing is taken at once, one that loosens is staged until an approver
// accepts it, a file that no longer loads puts its accepted policy in
// quarantine.
//
// Before an operation is decided [Keeper.Propose] says what it would change,
// so that the decision can compute whether it loosens, and which files it
// rests on, so that an approval is of what was shown. The operations
// themselves ([Keeper.Activate], [Keeper.Deactivate], [Keeper.Edit],
// [Keeper.Delete]) look again inside their transaction: what was free because
// it loosened nothing must still loosen nothing there.
//
// An ensemble brings the policies of its members, as they are when it is
// activated.
package activation
