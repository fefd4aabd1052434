package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Store keeps the objects. Package api/storetest says what each method does.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	// Try answers what Apply would, and changes nothing.
	Try(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Watch(ctx context.Context, since int64) (<-chan api.Event, error)
	// Sums are what is in use of each quota in a project or an organization.
	Sums(ctx context.Context, kind api.Kind, id string) (api.Amounts, error)
	// Records is one page of usage records.
	Records(ctx context.Context, q api.RecordQuery) (api.RecordPage, error)
	// Audit is one page of the audit trail.
	Audit(ctx context.Context, q api.AuditQuery) (api.AuditPage, error)
	// History of an instance, newest first: at most api.MaxHistory.
	History(ctx context.Context, id api.InstanceID) ([]api.InstanceEvent, error)
	// Events is one page of the events for webhooks.
	Events(ctx context.Context, q api.EventQuery) (api.EventPage, error)
	Revision() int64
}

// Runtime reaches what runs on the nodes. Errors that a user may see are
// *api.Error (CodeState: not running; CodeUnavailable: its node is away).
type Runtime interface {
	// ConsoleLog is the end of an instance's serial log, at most tail bytes.
	ConsoleLog(ctx context.Context, id api.InstanceID, tail int64) ([]byte, error)
	// Console opens its serial console; closed by the caller.
	Console(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error)
	// Screen opens a connection to its screen, which speaks VNC; closed by the
	// caller.
	Screen(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error)
	// Exec runs a command through the guest agent.
	Exec(ctx context.Context, id api.InstanceID, req api.ExecRequest) (api.ExecResult, error)
	// Leaks is what lies on the node and belongs to nobody.
	Leaks(ctx context.Context, node api.NodeID) ([]api.Leak, error)
	// Samples are what a node remembers of an instance that it has, of one of
	// its cards, or of itself.
	Samples(ctx context.Context, of api.Kind, id string, q api.SampleQuery) (api.Samples, error)
	// GPUTenants are the virtual GPUs on a card of the node now.
	GPUTenants(ctx context.Context, gpu api.GPUID) ([]api.GPUTenant, error)
	// PutImage takes an image's bytes; size is -1 when it is not known.
	PutImage(ctx context.Context, id api.ImageID, r io.Reader, size int64) error
}

// Shells signs in to instances by SSH.
type Shells interface {
	// OpenShell signs in as a user in the guest; empty: a.GuestUser. The shell ends with
	// ctx. Errors that a user may see are *api.Error.
	OpenShell(ctx context.Context, a SSHAccess, user string) (Shell, error)
}

// Shell is one session in a guest. Its methods may be called concurrently, and end with
// an error when it is closed.
type Shell interface {
	io.WriteCloser // standard input; Close ends the shell
	// Start runs a command or the user's shell; once.
	Start(run api.ShellStart) error
	Resize(to api.ShellSize) error
	// CloseWrite ends standard input.
	CloseWrite() error
	Stdout() io.Reader
	Stderr() io.Reader
	// Wait returns how what ran has ended, after its output has been read.
	Wait() (api.ShellExit, error)
}

// Membership answers what the nodes are to each other.
type Membership interface {
	Cluster(ctx context.Context) (api.Cluster, error)
	// NewJoinToken makes a token that carries the id, and the hash of its secret.
	NewJoinToken(ctx context.Context, id api.JoinTokenID) (token, hash string, err error)
	// Backup writes the control plane's state.
	Backup(ctx context.Context, w io.Writer) error
}

// Billing answers what was used, and what that costs.
type Billing interface {
	Usage(ctx context.Context, q api.UsageQuery) (api.UsagePage, error)
	// Export writes use as CSV.
	Export(ctx context.Context, org api.OrganizationID, from, to time.Time, format api.ExportFormat, w io.Writer) error
	Explain(ctx context.Context, q api.InvoiceQuestion) (api.InvoiceExplanation, error)
	InvoicePreview(ctx context.Context, org api.OrganizationID, from, to time.Time) (api.InvoicePreview, error)

	// Costs are one page of what an organization's usage of a period costs.
	Costs(ctx context.Context, q api.CostQuery) (api.CostPage, error)
	// InstanceCost is what an instance costs an hour, and has cost this month.
	InstanceCost(ctx context.Context, in api.Instance, now time.Time) (api.InstanceCost, error)
	// ExplainIssued is Explain for a line of an issued invoice.
	ExplainIssued(ctx context.Context, inv api.Invoice, line string, hour time.Time) (api.InvoiceExplanation, error)
	// DraftCreditNote makes the commands of a credit note; applying them is
	// refused (CodeConflict) when another document came in between.
	DraftCreditNote(ctx context.Context, id string, asked api.CreditNoteSpec, inv api.Invoice) ([]api.Command, error)
	Ledger(ctx context.Context, org api.OrganizationID) (api.Ledger, error)
	// Simulate returns what organizations would have paid by a price book.
	Simulate(ctx context.Context, q api.SimulationQuery) (api.Simulation, error)
	// Revenue is what a seller's documents have earned.
	Revenue(ctx context.Context, q api.RevenueQuery) (api.RevenuePage, error)
	// Uninvoiced is what an organization has used until then that no invoice charges.
	Uninvoiced(ctx context.Context, org api.OrganizationID, now time.Time) (api.Uninvoiced, error)
	// UninvoicedWholesale is what an organization has used until then that its reseller
	// pays for and no invoice charges; zero: its reseller does not pay for it.
	UninvoicedWholesale(ctx context.Context, org api.OrganizationID, now time.Time) (api.Uninvoiced, error)
	// InvoicePDF and CreditNotePDF print them.
	InvoicePDF(ctx context.Context, inv api.Invoice) ([]byte, error)
	CreditNotePDF(ctx context.Context, note api.CreditNote) ([]byte, error)
	// Wallet is how an organization stands at a moment.
	Wallet(ctx context.Context, org api.OrganizationID, now time.Time) (api.Wallet, error)
	// Currency that an organization pays in.
	Currency(ctx context.Context, org api.OrganizationID) (string, error)
}

// Payments takes money by card.
type Payments interface {
	// Begin asks the payment provider for the page of a checkout that is in the store;
	// again, for the same one.
	Begin(ctx context.Context, c api.Checkout) (api.Checkout, error)
	// Event is what the provider sent: CodeInvalid if it did not.
	Event(ctx context.Context, header http.Header, body []byte) error
}

// Room answers what would become of a new instance now.
type Room interface {
	// Lacks returns why the instance would wait, or nothing if there is room for it.
	Lacks(ctx context.Context, in api.Instance) (why string, err error)
}

// Tracer follows packets through the network.
type Tracer interface {
	Trace(ctx context.Context, q api.TraceQuestion) (api.NetworkTrace, error)
}
