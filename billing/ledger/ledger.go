package ledger

import (
	"errors"
	"slices"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Account is an account of the ledger: "receivable/org-1", "revenue/gpu-nanoseconds",
// "cash".
type Account string

// Cash is the account of received payments.
const Cash Account = "cash"

// Vouchers is the account that credit from vouchers comes from.
const Vouchers Account = "vouchers"

// Receivable returns the account of what an organization owes; a negative balance is
// prepaid credit.
func Receivable(org api.OrganizationID) Account { return Account("receivable/" + string(org)) }

// Revenue returns the account of a meter's revenue.
func Revenue(m api.Meter) Account { return Account("revenue/" + string(m)) }

// Entry debits one account and credits another with the same amount, so that any set of
// entries is balanced.
type Entry struct {
	Debit, Credit Account
	Micros        int64 // more than 0
}

// Transaction is a set of entries that is posted as a whole, once per ID.
type Transaction struct {
	ID       string
	At       time.Time
	Currency string
	Memo     string
	Entries  []Entry // in the order of their accounts
}

// Ledger is the balances of one currency, computed by posting transactions.
type Ledger struct {
	currency string
	posted   map[string]Transaction
	balances map[Account]int64 // debits minus credits
}

// NewLedger returns an empty ledger.
func NewLedger(currency string) *Ledger {
	return &Ledger{currency: currency, posted: map[string]Transaction{}, balances: map[Account]int64{}}
}

// errTooLarge is the error for more micros than an int64 holds, some nine million
// millions of the currency.
var errTooLarge = errors.New("the amount is too large")

// Post posts a transaction. Repeating it changes nothing; a different one with the same
// ID is refused (CodeConflict), as is an invalid one (CodeInvalid), without any effect.
func (l *Ledger) Post(t Transaction) error {
	if was, ok := l.posted[t.ID]; ok {
		if !was.equal(t) {
			return api.Errorf(api.CodeConflict, "transaction %s was already posted with other entries", t.ID)
		}
		return nil
	}
	if t.ID == "" || t.Currency != l.currency {
		return api.Errorf(api.CodeInvalid, "transaction %q in currency %q does not belong to this ledger", t.ID, t.Currency)
	}
	next := map[Account]int64{}
	balance := func(a Account) int64 {
		if b, ok := next[a]; ok {
			return b
		}
		return l.balances[a]
	}
	for n, e := range t.Entries {
		if e.Micros <= 0 || e.Debit == "" || e.Credit == "" || e.Debit == e.Credit {
			return api.Errorf(api.CodeInvalid, "transaction %s: entry %d: debit and credit accounts must differ and the amount must be positive", t.ID, n)
		}
		debit, credit := balance(e.Debit)+e.Micros, balance(e.Credit)-e.Micros
		if debit < balance(e.Debit) || credit > balance(e.Credit) {
			return api.Errorf(api.CodeTooLarge, "transaction %s: %v", t.ID, errTooLarge)
		}
		next[e.Debit], next[e.Credit] = debit, credit
	}
	for a, b := range next {
		l.balances[a] = b
	}
	t.Entries = slices.Clone(t.Entries)
	l.posted[t.ID] = t
	return nil
}

func (t Transaction) equal(u Transaction) bool {
	return t.ID == u.ID && t.Currency == u.Currency && t.At.Equal(u.At) && t.Memo == u.Memo && slices.Equal(t.Entries, u.Entries)
}

// Balance returns the balance of an account, in micros: debits minus credits, so that
// debts are positive and revenue is negative.
func (l *Ledger) Balance(a Account) int64 { return l.balances[a] }

// Accounts returns all accounts with postings, sorted.
func (l *Ledger) Accounts() []Account {
	var out []Account
	for a := range l.balances {
		out = append(out, a)
	}
	slices.Sort(out)
	return out
}
