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

// StartInstance by id.
func (a *API) StartInstance(ctx context.Context, id string) (api.Instance, error) {
	return decode[api.Instance](a.gen.StartInstance(ctx, id)) //nolint:bodyclose // decode closes it
}

// StopInstance by id.
func (a *API) StopInstance(ctx context.Context, id string) (api.Instance, error) {
	return decode[api.Instance](a.gen.StopInstance(ctx, id)) //nolint:bodyclose // decode closes it
}

// RestartInstance by id.
func (a *API) RestartInstance(ctx context.Context, id string) (api.Instance, error) {
	return decode[api.Instance](a.gen.RestartInstance(ctx, id)) //nolint:bodyclose // decode closes it
}

// DeleteVolume by id; with cascade its snapshots too.
func (a *API) DeleteVolume(ctx context.Context, id string, cascade bool) (api.Volume, error) {
	return decode[api.Volume](a.gen.DeleteVolume(ctx, id, &api.DeleteVolumeParams{Cascade: cascade})) //nolint:bodyclose // decode closes it
}

// Exec runs a command inside an instance.
func (a *API) Exec(ctx context.Context, id string, req api.ExecRequest) (api.ExecResult, error) {
	return decode[api.ExecResult](a.gen.ExecInInstance(ctx, id, req)) //nolint:bodyclose // decode closes it
}

// ConsoleLog is the end of an instance's serial log, tail bytes at most; 0: the
// server's choice.
func (a *API) ConsoleLog(ctx context.Context, id string, tail int64) ([]byte, error) {
	resp, err := a.gen.GetInstanceConsoleLog(ctx, id, &api.GetInstanceConsoleLogParams{Tail: tail})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if err := failure(resp); err != nil {
		return nil, err
	}
	return io.ReadAll(io.LimitReader(resp.Body, 2<<20))
}

// Console opens an instance's serial console.
func (a *API) Console(ctx context.Context, id string) (net.Conn, error) {
	return a.bridge(ctx, id, "console")
}

// Screen opens a connection to an instance's screen, which speaks VNC.
func (a *API) Screen(ctx context.Context, id string) (net.Conn, error) {
	return a.bridge(ctx, id, "vnc")
}

func (a *API) bridge(ctx context.Context, id, what string) (net.Conn, error) {
	header := http.Header{}
	if a.token != "" {
		header.Set("Authorization", "Bearer "+a.token)
	}
	ws, resp, err := websocket.Dial(ctx, a.base.JoinPath("v1", "instances", id, what).String(), //nolint:bodyclose // Dial has read it
		&websocket.DialOptions{HTTPClient: a.http, HTTPHeader: header})
	if err != nil {
		if resp != nil && resp.StatusCode >= 300 {
			return nil, failure(resp)
		}
		return nil, fmt.Errorf("open the %s: %w", what, err)
	}
	ws.SetReadLimit(1 << 20)
	return websocket.NetConn(ctx, ws, websocket.MessageBinary), nil
}

// PutImageContent sends an image's bytes; size is -1 when it is not known.
func (a *API) PutImageContent(ctx context.Context, id string, r io.Reader, size int64) (api.Image, error) {
	return decode[api.Image](a.gen.PutImageContentWithBody(ctx, id, "application/octet-stream", io.NopCloser(r), //nolint:bodyclose // decode closes it
		func(_ context.Context, req *http.Request) error {
			req.ContentLength = size
			return nil
		}))
}

// OrganizationQuota is its quotas and what is in use of each.
func (a *API) OrganizationQuota(ctx context.Context, ref string) (api.Quota, error) {
	return decode[api.Quota](a.gen.GetOrganizationQuota(ctx, ref)) //nolint:bodyclose // decode closes it
}

// ProjectQuota is its quotas and what is in use of each.
func (a *API) ProjectQuota(ctx context.Context, ref, organization string) (api.Quota, error) {
	return decode[api.Quota](a.gen.GetProjectQuota(ctx, ref, &api.GetProjectQuotaParams{Organization: organization})) //nolint:bodyclose // decode closes it
}

// InvoicePreview of a period that includes from but not to; an empty
// organization is the key's own.
func (a *API) InvoicePreview(ctx context.Context, organization string, from, to time.Time) (api.InvoicePreview, error) {
	return decode[api.InvoicePreview](a.gen.PreviewInvoice(ctx, &api.PreviewInvoiceParams{Organization: organization, From: from, To: to})) //nolint:bodyclose // decode closes it
}

// ExplainInvoice says what a line of an invoice preview is made of.
func (a *API) ExplainInvoice(ctx context.Context, q api.InvoiceQuestion) (api.InvoiceExplanation, error) {
	p := &api.ExplainInvoiceParams{Organization: string(q.Organization), From: q.From, To: q.To, Line: q.Line, Hour: q.Hour}
	return decode[api.InvoiceExplanation](a.gen.ExplainInvoice(ctx, p)) //nolint:bodyclose // decode closes it
}

// ExplainInvoiceLine says what a line of an issued invoice is made of; hour is
// zero unless the records of one are wanted.
func (a *API) ExplainInvoiceLine(ctx context.Context, invoice, organization, line string, hour time.Time) (api.InvoiceExplanation, error) {
	p := &api.ExplainInvoiceLineParams{Organization: organization, Line: line, Hour: hour}
	return decode[api.InvoiceExplanation](a.gen.ExplainInvoiceLine(ctx, invoice, p)) //nolint:bodyclose // decode closes it
}

// Ledger is an organization's transactions and balances.
func (a *API) Ledger(ctx context.Context, organization string) (api.Ledger, error) {
	return decode[api.Ledger](a.gen.GetLedger(ctx, &api.GetLedgerParams{Organization: organization})) //nolint:bodyclose // decode closes it
}

// Wallet is how an organization stands.
func (a *API) Wallet(ctx context.Context, organization string) (api.Wallet, error) {
	return decode[api.Wallet](a.gen.GetWallet(ctx, &api.GetWalletParams{Organization: organization})) //nolint:bodyclose // decode closes it
}

// SimulatePriceBook says what would have been paid by a price book; an empty
// organization is all of them.
func (a *API) SimulatePriceBook(ctx context.Context, ref, organization string, from, to time.Time) (api.Simulation, error) {
	p := &api.SimulatePriceBookParams{Organization: organization, From: from, To: to}
	return decode[api.Simulation](a.gen.SimulatePriceBook(ctx, ref, p)) //nolint:bodyclose // decode closes it
}

// InvoicePDF writes an invoice as PDF to w.
func (a *API) InvoicePDF(ctx context.Context, ref, organization string, w io.Writer) error {
	return copied(a.gen.GetInvoicePDF(ctx, ref, &api.GetInvoicePDFParams{Organization: organization}))(w) //nolint:bodyclose // copied closes it
}

// CreditNotePDF writes a credit note as PDF to w.
func (a *API) CreditNotePDF(ctx context.Context, ref, organization string, w io.Writer) error {
	return copied(a.gen.GetCreditNotePDF(ctx, ref, &api.GetCreditNotePDFParams{Organization: organization}))(w) //nolint:bodyclose // copied closes it
}

// copied copies an answer's body.
func copied(resp *http.Response, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if err := failure(resp); err != nil {
			return err
		}
		_, err := io.Copy(w, resp.Body)
		return err
	}
}

// Usage is one page of sums of use.
func (a *API) Usage(ctx context.Context, q api.UsageQuery) (api.UsagePage, error) {
	p := &api.ListUsageParams{Organization: q.Organization, Project: q.Project, Meter: q.Meter, Resource: q.Resource,
		From: q.From, To: q.To, By: q.By, Limit: q.Limit, Continue: q.Continue}
	return decode[api.UsagePage](a.gen.ListUsage(ctx, p)) //nolint:bodyclose // decode closes it
}

// ExportUsage writes use as CSV to w.
func (a *API) ExportUsage(ctx context.Context, organization string, from, to time.Time, format api.ExportFormat, w io.Writer) error {
	resp, err := a.gen.ExportUsage(ctx, &api.ExportUsageParams{Organization: organization, From: from, To: to, Format: format})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := failure(resp); err != nil {
		return err
	}
	_, err = io.Copy(w, resp.Body)
	return err
}

// TraceNetwork says where a packet goes: from and to are instances or addresses,
// packet is "tcp/443", "udp/53", "icmp" or "icmp6"; an empty project is the key's.
func (a *API) TraceNetwork(ctx context.Context, from, to, packet, project string) (api.NetworkTrace, error) {
	p := &api.TraceNetworkParams{From: from, To: to, Packet: packet, Project: project}
	return decode[api.NetworkTrace](a.gen.TraceNetwork(ctx, p)) //nolint:bodyclose // decode closes it
}

// NodeLeaks is what lies on the node and belongs to nobody.
func (a *API) NodeLeaks(ctx context.Context, id string) (api.LeakList, error) {
	return decode[api.LeakList](a.gen.GetNodeLeaks(ctx, id)) //nolint:bodyclose // decode closes it
}

// Whoami is the token's key.
func (a *API) Whoami(ctx context.Context) (api.Identity, error) {
	return decode[api.Identity](a.gen.Whoami(ctx)) //nolint:bodyclose // decode closes it
}

// Version of the server.
func (a *API) Version(ctx context.Context) (api.Version, error) {
	return decode[api.Version](a.gen.GetVersion(ctx)) //nolint:bodyclose // decode closes it
}

// errEnded is a watch that the server ended; it goes on with a new one.
var errEnded = errors.New("the watch ended")

// Watch streams changes after since, of the given kinds (none: all), over any
// number of connections: a stream that ends goes on where it was. It ends with
// ctx, or with an error that trying again does not mend.
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

// watchOnce reads one stream; nil: the caller has enough.
func (a *API) watchOnce(ctx context.Context, since int64, kinds []api.Kind, yield func(api.Event) bool) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// The server sends something every 15 s; a line silent for longer is dead.
	const silence = time.Minute
	dead := time.AfterFunc(silence, cancel)
	defer dead.Stop()
	resp, err := a.gen.Watch(ctx, &api.WatchParams{Since: since, Kind: kinds})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if err := failure(resp); err != nil {
		return err
	}
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
			return fmt.Errorf("read a change: %w", err)
		}
		if !yield(e) {
			return nil
		}
	}
}

// Address of the server, for messages.
func (a *API) Address() string { return strings.TrimSuffix(a.base.String(), "/") }

// InstanceEvents is an instance's history, newest first.
func (a *API) InstanceEvents(ctx context.Context, id string, limit int, after string) (api.InstanceEventList, error) {
	return decode[api.InstanceEventList](a.gen.ListInstanceEvents(ctx, id, &api.ListInstanceEventsParams{Limit: limit, Continue: after})) //nolint:bodyclose // decode closes it
}
