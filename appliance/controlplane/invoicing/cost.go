package invoicing

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/billing/invoice"
)

// InstanceCost returns what an instance with its root volume costs per hour by the
// current prices, and what its use of the current month has come to by those that were
// in effect, before what an invoice adds for the whole organization: commitments,
// minimum and taxes.
func (b Billing) InstanceCost(ctx context.Context, in api.Instance, now time.Time) (api.InstanceCost, error) {
	org, now := api.OrganizationID(in.Meta.Organization), now.UTC()
	c := api.InstanceCost{From: time.Date(now.Year(), now.Month(), 1, 0, 0, 0, 0, time.UTC), Until: now.Truncate(time.Hour).Add(time.Hour)}
	prices, err := b.prices(ctx, org, c.From, c.Until)
	if err != nil {
		return c, err
	}
	m, err := b.machine(ctx, in)
	if err != nil {
		return c, err
	}
	q, err := invoice.NewQuoter(prices, now.Truncate(time.Hour))
	if err != nil {
		return c, fmt.Errorf("begin to quote instance %s: %w", in.Meta.ID, err)
	}
	reserved, err := q.Quote(m, 0)
	if err != nil {
		return c, fmt.Errorf("quote instance %s: %w", in.Meta.ID, err)
	}
	full, err := q.Quote(m, 100)
	if err != nil {
		return c, fmt.Errorf("quote instance %s at full use of the GPU: %w", in.Meta.ID, err)
	}
	c.Currency, c.ReservedMicros, c.FullUseMicros = full.Currency, reserved.TotalMicros, full.TotalMicros
	month, err := b.rate(ctx, org, prices, invoice.Taxation{}, invoice.Whole(c.From, c.Until))
	for _, l := range month.Lines {
		if l.Kind == api.LineUsage && l.Resource != "" && (l.Resource == in.Meta.ID || l.Resource == string(in.Assignment.RootVolume)) {
			c.SpentMicros += l.AmountMicros
		}
	}
	return c, err
}

// machine returns what an instance uses while it runs, as its node's agent meters it.
// Objects that it refers to and that do not exist any more count as nothing.
func (b Billing) machine(ctx context.Context, in api.Instance) (invoice.Machine, error) {
	m := invoice.Machine{Flavor: string(in.Spec.Flavor)}
	flavor, err := find[api.Flavor](ctx, b.Store, api.KindFlavor, string(in.Spec.Flavor))
	if err != nil {
		return m, err
	}
	as := in.Assignment // its current resources, until it is stopped and started
	m.VCPUs, m.MemoryBytes = cmp.Or(as.Vcpus, flavor.Spec.Vcpus), cmp.Or(as.MemoryBytes, flavor.Spec.MemoryBytes)
	root, err := find[api.Volume](ctx, b.Store, api.KindVolume, string(as.RootVolume))
	if err != nil {
		return m, err
	}
	m.RootBytes, m.StorageClass = root.Spec.SizeBytes, root.Assignment.Pool
	if v := in.Spec.Vgpu; v != nil {
		m.VRAMBytes, m.SharePercent = cmp.Or(as.VgpuVramBytes, v.VramBytes), cmp.Or(as.VgpuSharePercent, v.SharePercent)
		m.Pool, m.Tier, m.Model = cmp.Or(v.Pool, api.DefaultPool), cmp.Or(as.VgpuTier, v.Tier), v.Model
		card, err := find[api.GPU](ctx, b.Store, api.KindGPU, string(as.Gpu))
		if err != nil {
			return m, err
		}
		if card.Status.Model != "" {
			m.Model = card.Status.Model
		}
	}
	return m, nil
}

// find returns an object, or the zero value if there is no ID or no such object.
func find[T any](ctx context.Context, s Store, kind api.Kind, id string) (t T, err error) {
	if id != "" {
		t, _, err = api.Find[T](ctx, s, kind, id)
	}
	return t, err
}
