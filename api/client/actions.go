package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/basalt-gpu/basalt/api"
)

// StartInstance starts an instance, given by ID.
func (a *API) StartInstance(ctx context.Context, id string) (api.Instance, error) {
	return post[api.Instance](ctx, a, nil, "instances", id, "start")
}

// StopInstance stops an instance, given by ID.
func (a *API) StopInstance(ctx context.Context, id string) (api.Instance, error) {
	return post[api.Instance](ctx, a, nil, "instances", id, "stop")
}

// RestartInstance restarts an instance, given by ID.
func (a *API) RestartInstance(ctx context.Context, id string) (api.Instance, error) {
	return post[api.Instance](ctx, a, nil, "instances", id, "restart")
}

// ReinstallInstance creates an instance's root volume again, from its own image or
// another.
func (a *API) ReinstallInstance(ctx context.Context, id string, req api.InstanceReinstall) (api.Instance, error) {
	return post[api.Instance](ctx, a, req, "instances", id, "reinstall")
}

// RescueInstance restarts an instance, given by ID, from a rescue medium.
func (a *API) RescueInstance(ctx context.Context, id string, req api.InstanceRescue) (api.Instance, error) {
	return post[api.Instance](ctx, a, req, "instances", id, "rescue")
}

// UnrescueInstance ends the rescue of an instance, given by ID.
func (a *API) UnrescueInstance(ctx context.Context, id string) (api.Instance, error) {
	return post[api.Instance](ctx, a, nil, "instances", id, "unrescue")
}

// DeleteVolume deletes a volume; with cascade also its snapshots.
func (a *API) DeleteVolume(ctx context.Context, id string, cascade bool) (api.Volume, error) {
	return call[api.Volume](ctx, a, request{method: http.MethodDelete, path: []string{"volumes", id}, params: api.DeleteVolumeParams{Cascade: cascade}})
}

// Exec runs a command inside an instance.
func (a *API) Exec(ctx context.Context, id string, req api.ExecRequest) (api.ExecResult, error) {
	return post[api.ExecResult](ctx, a, req, "instances", id, "exec")
}

// InstanceCost returns an instance's cost per hour, and its costs this month.
func (a *API) InstanceCost(ctx context.Context, id string) (api.InstanceCost, error) {
	return call[api.InstanceCost](ctx, a, request{method: http.MethodGet, path: []string{"instances", id, "cost"}})
}

// OpenApp creates a link with which a browser opens what an instance serves on a port.
func (a *API) OpenApp(ctx context.Context, id string, port int64) (api.AppLink, error) {
	return post[api.AppLink](ctx, a, api.AppLinkRequest{Port: port}, "instances", id, "app-links")
}

// ConsoleLog returns the end of an instance's serial log, at most tail bytes; 0 selects
// the server's default.
func (a *API) ConsoleLog(ctx context.Context, id string, tail int64) ([]byte, error) {
	resp, err := a.send(ctx, request{method: http.MethodGet, path: []string{"instances", id, "console-log"}, params: api.GetInstanceConsoleLogParams{Tail: tail}})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(io.LimitReader(resp.Body, 2<<20))
}

// Console opens an instance's serial console.
func (a *API) Console(ctx context.Context, id string) (net.Conn, error) {
	return a.bridge(ctx, id, "console")
}

// Screen opens a VNC connection to an instance's screen.
func (a *API) Screen(ctx context.Context, id string) (net.Conn, error) {
	return a.bridge(ctx, id, "vnc")
}

func (a *API) bridge(ctx context.Context, id, what string) (net.Conn, error) {
	ws, err := a.websocket(ctx, nil, "instances", id, what)
	if err != nil {
		return nil, err
	}
	return websocket.NetConn(ctx, ws, websocket.MessageBinary), nil
}

// DeleteBackup deletes a backup; with forget the data in its target is kept.
func (a *API) DeleteBackup(ctx context.Context, id string, forget bool) (api.Backup, error) {
	return call[api.Backup](ctx, a, request{method: http.MethodDelete, path: []string{"backups", id}, params: api.DeleteBackupParams{Forget: forget}})
}

// PutImageContent sends an image's bytes; size is -1 if it is unknown.
func (a *API) PutImageContent(ctx context.Context, id string, r io.Reader, size int64) (api.Image, error) {
	return call[api.Image](ctx, a, request{method: http.MethodPut, path: []string{"images", id, "content"}, content: r, size: size})
}

// OrganizationQuota returns an organization's limits and use.
func (a *API) OrganizationQuota(ctx context.Context, ref string) (api.Quota, error) {
	return get[api.Quota](ctx, a, nil, "organizations", ref, "quota")
}

// ProjectQuota returns a project's limits and use.
func (a *API) ProjectQuota(ctx context.Context, ref, organization string) (api.Quota, error) {
	return get[api.Quota](ctx, a, api.GetProjectQuotaParams{Organization: organization}, "projects", ref, "quota")
}

// InvoicePreview returns the costs of a period that includes from but not to; an empty
// organization means the key's own.
func (a *API) InvoicePreview(ctx context.Context, organization string, from, to time.Time) (api.InvoicePreview, error) {
	return get[api.InvoicePreview](ctx, a, api.PreviewInvoiceParams{Organization: organization, From: from, To: to}, "invoice-preview")
}

// Costs returns one page of the costs of an organization's usage.
func (a *API) Costs(ctx context.Context, p api.ListCostsParams) (api.CostPage, error) {
	return get[api.CostPage](ctx, a, p, "costs")
}

// PriceBookVersions returns the versions, the newest first, reading pages of limit
// items; an error ends it.
func (a *API) PriceBookVersions(ctx context.Context, ref string, limit int) iter.Seq2[api.PriceBookSpec, error] {
	return pages(func(from string) (Page[api.PriceBookSpec], error) {
		return get[Page[api.PriceBookSpec]](ctx, a, api.ListPriceBookVersionsParams{Limit: limit, Continue: from}, "price-books", ref, "versions")
	})
}

// ExplainInvoice returns the usage behind a line of an invoice preview.
func (a *API) ExplainInvoice(ctx context.Context, q api.InvoiceQuestion) (api.InvoiceExplanation, error) {
	p := api.ExplainInvoiceParams{Organization: string(q.Organization), From: q.From, To: q.To, Line: q.Line, Hour: q.Hour}
	return get[api.InvoiceExplanation](ctx, a, p, "invoice-explanation")
}

// ExplainInvoiceLine returns the usage behind a line of an issued invoice; a non-zero
// hour adds the records of that hour.
func (a *API) ExplainInvoiceLine(ctx context.Context, invoice, organization, line string, hour time.Time) (api.InvoiceExplanation, error) {
	p := api.ExplainInvoiceLineParams{Organization: organization, Line: line, Hour: hour}
	return get[api.InvoiceExplanation](ctx, a, p, "invoices", invoice, "explanation")
}

// Ledger returns an organization's transactions and balances.
func (a *API) Ledger(ctx context.Context, organization string) (api.Ledger, error) {
	return get[api.Ledger](ctx, a, api.GetLedgerParams{Organization: organization}, "ledger")
}

// Wallet returns an organization's balance and open invoices.
func (a *API) Wallet(ctx context.Context, organization string) (api.Wallet, error) {
	return get[api.Wallet](ctx, a, api.GetWalletParams{Organization: organization}, "wallet")
}

// TaxSettings returns which taxes a reseller charges; empty means the caller, which for an
// operator is the cluster.
func (a *API) TaxSettings(ctx context.Context, reseller string) (api.TaxSettings, error) {
	return get[api.TaxSettings](ctx, a, api.GetTaxSettingsParams{Organization: reseller}, "tax-settings")
}

// UpdateTaxSettings replaces which taxes a reseller charges, unless they were changed since
// their revision.
func (a *API) UpdateTaxSettings(ctx context.Context, reseller string, t api.TaxSettings) (api.TaxSettings, error) {
	return call[api.TaxSettings](ctx, a, request{method: http.MethodPut, path: []string{"tax-settings"}, params: api.UpdateTaxSettingsParams{Organization: reseller}, body: t})
}

// PatchTaxSettings changes the fields of tax settings that a JSON merge patch names.
func (a *API) PatchTaxSettings(ctx context.Context, reseller string, changes any) (api.TaxSettings, error) {
	return call[api.TaxSettings](ctx, a, request{method: http.MethodPatch, path: []string{"tax-settings"}, params: api.PatchTaxSettingsParams{Organization: reseller}, body: changes})
}

// AutoPay returns an organization's automatic payment of invoices; empty means the
// caller's.
func (a *API) AutoPay(ctx context.Context, organization string) (api.AutoPay, error) {
	return get[api.AutoPay](ctx, a, api.GetAutoPayParams{Organization: organization}, "auto-pay")
}

// UpdateAutoPay replaces an organization's automatic payment of invoices, unless it was
// changed since its revision.
func (a *API) UpdateAutoPay(ctx context.Context, organization string, t api.AutoPay) (api.AutoPay, error) {
	return call[api.AutoPay](ctx, a, request{method: http.MethodPut, path: []string{"auto-pay"}, params: api.UpdateAutoPayParams{Organization: organization}, body: t})
}

// PatchAutoPay changes the fields of an organization's automatic payment of invoices that a
// JSON merge patch names; empty means the caller's.
func (a *API) PatchAutoPay(ctx context.Context, organization string, changes any) (api.AutoPay, error) {
	return call[api.AutoPay](ctx, a, request{method: http.MethodPatch, path: []string{"auto-pay"}, params: api.PatchAutoPayParams{Organization: organization}, body: changes})
}

// TopUp returns an organization's automatic top-up; empty means the caller's.
func (a *API) TopUp(ctx context.Context, organization string) (api.TopUp, error) {
	return get[api.TopUp](ctx, a, api.GetTopUpParams{Organization: organization}, "top-up")
}

// UpdateTopUp replaces an organization's automatic top-up, unless it was changed since its
// revision; empty means the caller's.
func (a *API) UpdateTopUp(ctx context.Context, organization string, t api.TopUp) (api.TopUp, error) {
	return call[api.TopUp](ctx, a, request{method: http.MethodPut, path: []string{"top-up"}, params: api.UpdateTopUpParams{Organization: organization}, body: t})
}

// PatchTopUp changes the fields of an organization's automatic top-up that a JSON merge
// patch names, as MergePatch returns; empty means the caller's.
func (a *API) PatchTopUp(ctx context.Context, organization string, changes any) (api.TopUp, error) {
	return call[api.TopUp](ctx, a, request{method: http.MethodPatch, path: []string{"top-up"}, params: api.PatchTopUpParams{Organization: organization}, body: changes})
}

// IssueFinalInvoices issues the invoices of an organization until now; empty means the
// caller's. With dryRun it returns them without issuing them.
func (a *API) IssueFinalInvoices(ctx context.Context, organization string, dryRun bool) (api.FinalInvoices, error) {
	var params api.IssueFinalInvoicesParams
	if dryRun {
		params.DryRun = "all"
	}
	return call[api.FinalInvoices](ctx, a, request{method: http.MethodPost, path: []string{"final-invoices"}, params: params, body: api.FinalInvoiceRequest{Organization: organization}})
}

// RedeemVoucher gives an organization the credit of a voucher; empty means the
// caller's.
func (a *API) RedeemVoucher(ctx context.Context, organization, code string) (api.Payment, error) {
	return post[api.Payment](ctx, a, api.VoucherRedemption{Organization: organization, Code: code}, "voucher-redemptions")
}

// SecuritySettings returns the security settings of the cluster.
func (a *API) SecuritySettings(ctx context.Context) (api.SecuritySettings, error) {
	return get[api.SecuritySettings](ctx, a, nil, "security-settings")
}

// UpdateSecuritySettings replaces the settings, unless they were changed since their
// revision.
func (a *API) UpdateSecuritySettings(ctx context.Context, s api.SecuritySettings) (api.SecuritySettings, error) {
	return put[api.SecuritySettings](ctx, a, s, "security-settings")
}

// PatchSecuritySettings changes the fields of the settings that a JSON merge patch names, as MergePatch returns.
func (a *API) PatchSecuritySettings(ctx context.Context, changes any) (api.SecuritySettings, error) {
	return patch[api.SecuritySettings](ctx, a, changes, "security-settings")
}

// ACMESettings returns the settings of certificates, without private keys.
func (a *API) ACMESettings(ctx context.Context) (api.ACMESettings, error) {
	return get[api.ACMESettings](ctx, a, nil, "acme-settings")
}

// UpdateACMESettings replaces the settings of certificates, unless they were changed since
// their revision was read.
func (a *API) UpdateACMESettings(ctx context.Context, s api.ACMESettings) (api.ACMESettings, error) {
	return put[api.ACMESettings](ctx, a, s, "acme-settings")
}

// PatchACMESettings changes the fields of the settings of certificates that a JSON merge patch
// names, as MergePatch returns.
func (a *API) PatchACMESettings(ctx context.Context, changes any) (api.ACMESettings, error) {
	return patch[api.ACMESettings](ctx, a, changes, "acme-settings")
}

// SignUpSettings returns the settings without the secret.
func (a *API) SignUpSettings(ctx context.Context) (api.SignUpSettings, error) {
	return get[api.SignUpSettings](ctx, a, nil, "sign-up-settings")
}

// UpdateSignUpSettings replaces the settings, unless they were changed since their
// revision.
func (a *API) UpdateSignUpSettings(ctx context.Context, s api.SignUpSettings) (api.SignUpSettings, error) {
	return put[api.SignUpSettings](ctx, a, s, "sign-up-settings")
}

// OrganizationSignUpSettings returns the settings of sign-up in a reseller's portal, without
// the secret.
func (a *API) OrganizationSignUpSettings(ctx context.Context, organization string) (api.SignUpSettings, error) {
	return get[api.SignUpSettings](ctx, a, nil, "organizations", organization, "sign-up-settings")
}

// UpdateOrganizationSignUpSettings replaces the settings of sign-up in a reseller's portal,
// unless they were changed since their revision was read.
func (a *API) UpdateOrganizationSignUpSettings(ctx context.Context, organization string, s api.SignUpSettings) (api.SignUpSettings, error) {
	return put[api.SignUpSettings](ctx, a, s, "organizations", organization, "sign-up-settings")
}

// PatchOrganizationSignUpSettings changes the fields of the settings of sign-up in a reseller's
// portal that a JSON merge patch names, as MergePatch returns.
func (a *API) PatchOrganizationSignUpSettings(ctx context.Context, organization string, changes any) (api.SignUpSettings, error) {
	return patch[api.SignUpSettings](ctx, a, changes, "organizations", organization, "sign-up-settings")
}

// PatchSignUpSettings changes the fields of the settings that a JSON merge patch names, as MergePatch returns.
func (a *API) PatchSignUpSettings(ctx context.Context, changes any) (api.SignUpSettings, error) {
	return patch[api.SignUpSettings](ctx, a, changes, "sign-up-settings")
}

// PaymentSettings returns the settings of card payments, without the secrets.
func (a *API) PaymentSettings(ctx context.Context) (api.PaymentSettings, error) {
	return get[api.PaymentSettings](ctx, a, nil, "payment-settings")
}

// UpdatePaymentSettings replaces the settings, unless they were changed since their
// revision.
func (a *API) UpdatePaymentSettings(ctx context.Context, s api.PaymentSettings) (api.PaymentSettings, error) {
	return put[api.PaymentSettings](ctx, a, s, "payment-settings")
}

// PatchPaymentSettings changes the fields of the settings that a JSON merge patch names, as MergePatch returns.
func (a *API) PatchPaymentSettings(ctx context.Context, changes any) (api.PaymentSettings, error) {
	return patch[api.PaymentSettings](ctx, a, changes, "payment-settings")
}

// SimulatePriceBook returns what would have been paid by a price book; an empty
// organization means all.
func (a *API) SimulatePriceBook(ctx context.Context, ref, organization string, from, to time.Time) (api.Simulation, error) {
	p := api.SimulatePriceBookParams{Organization: organization, From: from, To: to}
	return get[api.Simulation](ctx, a, p, "price-books", ref, "simulation")
}

// QuotePriceBook returns what a machine costs in a month by a price book.
func (a *API) QuotePriceBook(ctx context.Context, ref string, q api.PriceQuoteRequest) (api.PriceQuote, error) {
	return post[api.PriceQuote](ctx, a, q, "price-books", ref, "quote")
}

// InvoicePDF writes an invoice as PDF to w.
func (a *API) InvoicePDF(ctx context.Context, ref, organization string, w io.Writer) error {
	return a.save(ctx, w, request{method: http.MethodGet, path: []string{"invoices", ref, "pdf"}, params: api.GetInvoicePDFParams{Organization: organization}})
}

// CreditNotePDF writes a credit note as PDF to w.
func (a *API) CreditNotePDF(ctx context.Context, ref, organization string, w io.Writer) error {
	return a.save(ctx, w, request{method: http.MethodGet, path: []string{"credit-notes", ref, "pdf"}, params: api.GetCreditNotePDFParams{Organization: organization}})
}

// Usage returns one page of sums of usage.
func (a *API) Usage(ctx context.Context, q api.UsageQuery) (api.UsagePage, error) {
	return get[api.UsagePage](ctx, a, api.ListUsageParams(q), "usage")
}

// ExportUsage writes usage as CSV to w.
func (a *API) ExportUsage(ctx context.Context, organization string, from, to time.Time, format api.ExportFormat, w io.Writer) error {
	p := api.ExportUsageParams{Organization: organization, From: from, To: to, Format: format}
	return a.save(ctx, w, request{method: http.MethodGet, path: []string{"usage", "export"}, params: p})
}

// TraceNetwork returns the path of a packet: from and to are instances or addresses,
// packet is "tcp/443", "udp/53", "icmp" or "icmp6"; an empty project means the key's.
func (a *API) TraceNetwork(ctx context.Context, from, to, packet, project string) (api.NetworkTrace, error) {
	p := api.TraceNetworkParams{From: from, To: to, Packet: packet, Project: project}
	return get[api.NetworkTrace](ctx, a, p, "network-trace")
}

// NodeLeaks returns what exists on the node but belongs to no object.
func (a *API) NodeLeaks(ctx context.Context, id string) (api.LeakList, error) {
	return get[api.LeakList](ctx, a, nil, "nodes", id, "leaks")
}

// Whoami returns the identity of the token.
func (a *API) Whoami(ctx context.Context) (api.Identity, error) {
	return get[api.Identity](ctx, a, nil, "whoami")
}

// Version returns the server's version.
func (a *API) Version(ctx context.Context) (api.Version, error) {
	return get[api.Version](ctx, a, nil, "version")
}

// errEnded is the error of a watch that the server ended; a new one continues it.
var errEnded = errors.New("the watch has ended")

// Watch streams changes after since, of the given kinds (none: all), over any number of
// connections: a stream that ends is resumed. It ends with ctx, or with an error that
// retrying does not resolve.
func (a *API) Watch(ctx context.Context, since int64, kinds ...api.Kind) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		wait := time.Second
		for ctx.Err() == nil {
			err := a.watchOnce(ctx, since, kinds, func(e api.Event) bool {
				wait = time.Second
				if e.Revision > 0 {
					since = e.Revision
				}
				return yield(e, nil)
			})
			if err == nil {
				return
			}
			if code := api.CodeOf(err); code != api.CodeInternal && code != api.CodeUnavailable && code != api.CodeRateLimited {
				yield(api.Event{}, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(wait):
				wait = min(2*wait, 30*time.Second)
			}
		}
	}
}

// watchOnce reads one stream; it returns nil when yield has returned false.
func (a *API) watchOnce(ctx context.Context, since int64, kinds []api.Kind, yield func(api.Event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The server sends something every 15 s; a connection that is silent for longer is
	// lost.
	const silence = time.Minute
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	resp, err := a.send(ctx, request{method: http.MethodGet, path: []string{"watch"}, params: api.WatchParams{Since: since, Kind: kinds}})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	lines := bufio.NewReader(resp.Body)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return errors.Join(errEnded, err)
		}
		dead.Reset(silence)
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		var e api.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return fmt.Errorf("read watch event: %w", err)
		}
		if !yield(e) {
			return nil
		}
	}
}

// Address returns the server's address, for messages.
func (a *API) Address() string { return strings.TrimSuffix(a.base.String(), "/") }

// InstanceEvents returns an instance's history, newest first.
func (a *API) InstanceEvents(ctx context.Context, id string, limit int, after string) (api.InstanceEventList, error) {
	return get[api.InstanceEventList](ctx, a, api.ListInstanceEventsParams{Limit: limit, Continue: after}, "instances", id, "events")
}
