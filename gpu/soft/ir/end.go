package ir

import "fmt"

// End is the end of a basic block: one of this package's types.
type End interface {
	// Name returns the end with the blocks that it names, for a program's text.
	Name() string
	// Next returns the blocks of the same function at which lanes may continue.
	Next() []int
	// Source returns the register that it reads, or None.
	Source() Ref
}

// Goto continues at a block.
type Goto struct{ To int }

// Branch continues at To where P is true and at Else elsewhere.
type Branch struct {
	P        Pred
	To, Else int
}

// Table continues at the block of an index. An index past the end uses the last entry,
// so that the lanes stay in the function.
type Table struct {
	Index Ref
	To    []int
}

// Exit ends the lanes.
type Exit struct{}

// Call calls a function that no other lanes execute at the same time, and continues at
// Back.
type Call struct{ To, Back int }

// Return ends a function that is called by Call, or a kernel.
type Return struct{}

// CallDynamic calls a function that may be entered again.
type CallDynamic struct {
	F    *Callee
	Back int
}

// CallAddress calls the function whose address is in a register. Lanes with different
// addresses diverge.
type CallAddress struct {
	Target    Ref
	Signature string
	Back      int
}

// ReturnDynamic ends a function that is called by CallDynamic or CallAddress.
type ReturnDynamic struct{ F *Callee }

// Name implements End.
func (e Goto) Name() string { return fmt.Sprintf("goto b%d", e.To) }

// Next implements End.
func (e Goto) Next() []int { return []int{e.To} }

// Source implements End.
func (e Goto) Source() Ref { return None }

// Name implements End.
func (e Branch) Name() string {
	return fmt.Sprintf("branch%s b%d else b%d", negations(e.P), e.To, e.Else)
}

// Next implements End.
func (e Branch) Next() []int { return []int{e.To, e.Else} }

// Source implements End.
func (e Branch) Source() Ref { return e.P.Ref() }

// Name implements End.
func (e Table) Name() string { return fmt.Sprintf("table %d", e.To) }

// Next implements End.
func (e Table) Next() []int { return e.To }

// Source implements End.
func (e Table) Source() Ref { return e.Index }

// Name implements End.
func (e Exit) Name() string { return "exit" }

// Next implements End.
func (e Exit) Next() []int { return nil }

// Source implements End.
func (e Exit) Source() Ref { return None }

// Name implements End.
func (e Call) Name() string { return fmt.Sprintf("call b%d back b%d", e.To, e.Back) }

// Next implements End.
func (e Call) Next() []int { return []int{e.Back} }

// Source implements End.
func (e Call) Source() Ref { return None }

// Name implements End.
func (e Return) Name() string { return "return" }

// Next implements End.
func (e Return) Next() []int { return nil }

// Source implements End.
func (e Return) Source() Ref { return None }

// Name implements End.
func (e CallDynamic) Name() string { return fmt.Sprintf("call %s back b%d", e.F.Name, e.Back) }

// Next implements End.
func (e CallDynamic) Next() []int { return []int{e.Back} }

// Source implements End.
func (e CallDynamic) Source() Ref { return None }

// Name implements End.
func (e CallAddress) Name() string { return fmt.Sprintf("call address back b%d", e.Back) }

// Next implements End.
func (e CallAddress) Next() []int { return []int{e.Back} }

// Source implements End.
func (e CallAddress) Source() Ref { return e.Target }

// Name implements End.
func (e ReturnDynamic) Name() string { return "return from " + e.F.Name }

// Next implements End.
func (e ReturnDynamic) Next() []int { return nil }

// Source implements End: it returns the base of a frame on the lanes' stack, which is
// freed.
func (e ReturnDynamic) Source() Ref {
	if e.F.Stack > 0 {
		return e.F.Base
	}
	return None
}
