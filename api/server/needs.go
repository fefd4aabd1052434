package server

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/basalt-gpu/basalt/api"
)

// Store stores the objects. Package api/storetest documents its methods.
type Store interface {
	Apply(ctx context.Context, b api.Batch) ([]api.Object, error)
	// Try returns what Apply would return, without changing anything.
	Try(ctx context.Context, b api.Batch) ([]api.Object, error)
	Get(ctx context.Context, kind api.Kind, id string) (api.Object, error)
	List(ctx context.Context, q api.ListQuery) (api.ListPage, error)
	Watch(ctx context.Context, since int64) (<-chan api.Event, error)
	// Sums returns the use of each quota in a project or an organization.
	Sums(ctx context.Context, kind api.Kind, id string) (api.Amounts, error)
	// Records returns one page of usage records.
	Records(ctx context.Context, q api.RecordQuery) (api.RecordPage, error)
	// Audit returns one page of the audit log.
	Audit(ctx context.Context, q api.AuditQuery) (api.AuditPage, error)
	// History returns an instance's history, newest first: at most api.MaxHistory
	// entries.
	History(ctx context.Context, id api.InstanceID) ([]api.InstanceEvent, error)
	// Events returns one page of the events for webhooks.
	Events(ctx context.Context, q api.EventQuery) (api.EventPage, error)
	Revision() int64
}

// Runtime gives access to what runs on the nodes. Errors that a user may see are
// *api.Error (CodeState: not running; CodeUnavailable: node unreachable).
type Runtime interface {
	// ConsoleLog returns the end of an instance's serial log, at most tail bytes.
	ConsoleLog(ctx context.Context, id api.InstanceID, tail int64) ([]byte, error)
	// Console opens the serial console. The caller must close it.
	Console(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error)
	// Screen opens a VNC connection to the screen. The caller must close it.
	Screen(ctx context.Context, id api.InstanceID) (io.ReadWriteCloser, error)
	// Exec runs a command through the guest agent.
	Exec(ctx context.Context, id api.InstanceID, req api.ExecRequest) (api.ExecResult, error)
	// Leaks returns what exists on the node but belongs to no object.
	Leaks(ctx context.Context, node api.NodeID) ([]api.Leak, error)
	// Samples returns the samples that a node has recorded of one of its instances or
	// GPUs, or of itself.
	Samples(ctx context.Context, of api.Kind, id string, q api.SampleQuery) (api.Samples, error)
	// GPUTenants returns the virtual GPUs that are now on a GPU of the node.
	GPUTenants(ctx context.Context, gpu api.GPUID) ([]api.GPUTenant, error)
	// PutImage stores an image's bytes; size is -1 if it is unknown.
	PutImage(ctx context.Context, id api.ImageID, r io.Reader, size int64) error
}

// Shells opens SSH sessions in instances.
type Shells interface {
	// OpenShell signs in as a user of the guest, by default a.GuestUser. The shell ends
	// with ctx. Errors that a user may see are *api.Error.
	OpenShell(ctx context.Context, a SSHAccess, user string) (Shell, error)
}

// Shell is one session in a guest. Its methods may be called concurrently, and return
// an error once it is closed.
type Shell interface {
	io.WriteCloser // standard input; Close ends the shell
	// Start runs a command or the user's shell; it may be called once.
	Start(run api.ShellStart) error
	Resize(to api.ShellSize) error
	// CloseWrite ends standard input.
	CloseWrite() error
	Stdout() io.Reader
	Stderr() io.Reader
	// Wait returns the exit status, after the output has been read.
	Wait() (api.ShellExit, error)
}

// Membership returns the cluster's members and admits new ones.
type Membership interface {
	Cluster(ctx context.Context) (api.Cluster, error)
	// NewJoinToken returns a token that contains the ID, and the hash of its secret.
	NewJoinToken(ctx context.Context, id api.JoinTokenID) (token, hash string, err error)
	// ReplaceCA begins to replace the cluster's CA; with renew, certificates are renewed
	// once all nodes trust the new one. CancelCAReplacement keeps the old one, if the new
	// one does not sign yet.
	ReplaceCA(ctx context.Context, renew bool) error
	CancelCAReplacement(ctx context.Context) error
	// Backup writes the control plane's state.
	Backup(ctx context.Context, w io.Writer) error
}

// Billing evaluates usage and its costs.
type Billing interface {
	Usage(ctx context.Context, q api.UsageQuery) (api.UsagePage, error)
	// Export writes usage as CSV.
	Export(ctx context.Context, org api.OrganizationID, from, to time.Time, format api.ExportFormat, w io.Writer) error
	Explain(ctx context.Context, q api.InvoiceQuestion) (api.InvoiceExplanation, error)
	InvoicePreview(ctx context.Context, org api.OrganizationID, from, to time.Time) (api.InvoicePreview, error)

	// Costs returns one page of the costs of an organization's usage in a period.
	Costs(ctx context.Context, q api.CostQuery) (api.CostPage, error)
	// InstanceCost returns an instance's cost per hour, and its costs this month.
	InstanceCost(ctx context.Context, in api.Instance, now time.Time) (api.InstanceCost, error)
	// ExplainIssued is like Explain, for a line of an issued invoice.
	ExplainIssued(ctx context.Context, inv api.Invoice, line string, hour time.Time) (api.InvoiceExplanation, error)
	// DraftCreditNote returns the commands that create a credit note. Applying them
	// fails with CodeConflict if another document was issued in between.
	DraftCreditNote(ctx context.Context, id string, asked api.CreditNoteSpec, inv api.Invoice) ([]api.Command, error)
	// DraftFinalInvoices returns the commands that issue an organization's final invoices
	// now, and these invoices; no commands, and the last invoice, if nothing was used since.
	// Applying them fails with CodeConflict or CodeExists if another document was issued
	// in between.
	DraftFinalInvoices(ctx context.Context, org api.OrganizationID, now time.Time) ([]api.Command, []api.Invoice, error)
	Ledger(ctx context.Context, org api.OrganizationID) (api.Ledger, error)
	// Simulate returns what organizations would have paid by a price book.
	Simulate(ctx context.Context, q api.SimulationQuery) (api.Simulation, error)
	// Quote returns what a machine costs in a month by a price book. The query is valid.
	Quote(ctx context.Context, q api.PriceQuoteQuery) (api.PriceQuote, error)
	// Revenue returns the revenue from a seller's documents.
	Revenue(ctx context.Context, q api.RevenueQuery) (api.RevenuePage, error)
	// Uninvoiced returns an organization's usage up to now that no invoice charges.
	Uninvoiced(ctx context.Context, org api.OrganizationID, now time.Time) (api.Uninvoiced, error)
	// UninvoicedWholesale returns an organization's usage up to now that its reseller
	// pays for and no invoice charges; zero if the reseller does not pay for it.
	UninvoicedWholesale(ctx context.Context, org api.OrganizationID, now time.Time) (api.Uninvoiced, error)
	// InvoicePDF and CreditNotePDF return the document as PDF.
	InvoicePDF(ctx context.Context, inv api.Invoice) ([]byte, error)
	CreditNotePDF(ctx context.Context, note api.CreditNote) ([]byte, error)
	// Wallet returns an organization's balance and open invoices at a time.
	Wallet(ctx context.Context, org api.OrganizationID, now time.Time) (api.Wallet, error)
	// Currency returns the currency that an organization pays in.
	Currency(ctx context.Context, org api.OrganizationID) (string, error)
}

// Payments processes card payments.
type Payments interface {
	// Begin requests the payment page of a stored checkout from the provider. A
	// repeated call requests the same page.
	Begin(ctx context.Context, c api.Checkout) (api.Checkout, error)
	// BeginCard requests the page on which a stored card is entered. A repeated call
	// requests the same page.
	BeginCard(ctx context.Context, c api.Card) (api.Card, error)
	// DetachCard removes a saved card at the provider; a repeated call succeeds.
	DetachCard(ctx context.Context, c api.Card) error
	// SetDefaultCard makes a saved card the default of its organization.
	SetDefaultCard(ctx context.Context, c api.Card) (api.Card, error)
	// BeginRefund requests a stored refund from the provider. A repeated call requests the
	// same refund.
	BeginRefund(ctx context.Context, r api.Refund) (api.Refund, error)
	// Event processes an event from the provider. The error is CodeInvalid if its
	// signature is not valid.
	Event(ctx context.Context, header http.Header, body []byte) error
}

// Room predicts whether instances could be placed, resized and migrated now.
type Room interface {
	// PendingReason returns why the instance would stay pending, or nothing if a node has enough
	// free capacity.
	PendingReason(ctx context.Context, in api.Instance) (api.Reason, error)
	// ResizeReason returns why the instance would keep its size if it were stopped now, or
	// nothing if it would get the size that its spec requests.
	ResizeReason(ctx context.Context, in api.Instance) (api.Reason, error)
	// MigrationTarget returns the node that a migration that is created now would choose,
	// or a domain error with the reason why it would fail.
	MigrationTarget(ctx context.Context, in api.Instance, m api.MigrationSpec) (api.NodeID, error)
	// VolumeMigrationTarget is MigrationTarget for a volume without an instance.
	VolumeMigrationTarget(ctx context.Context, v api.Volume, m api.MigrationSpec) (api.NodeID, error)
	// NextPlace returns the place in the queue that an instance would have if it began to
	// wait now.
	NextPlace(ctx context.Context, in api.Instance) (api.InstanceQueue, error)
	// Queue returns the places of those of the instances that wait for room, by ID.
	Queue(ctx context.Context, ins []api.Instance) (map[string]api.InstanceQueue, error)
}

// Tracer traces packets through the network.
type Tracer interface {
	Trace(ctx context.Context, q api.TraceQuestion) (api.NetworkTrace, error)
}
