package cli

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/basalt-gpu/basalt/api"
	"github.com/basalt-gpu/basalt/api/client"
)

// samplesCommand shows the recent utilization of one object, one row per step.
func samplesCommand[T any](k *kind[T], ask func(*client.API, context.Context, string, api.SampleQuery) (api.Samples, error)) *cobra.Command {
	cmd := &cobra.Command{Use: "samples NAME|ID", Short: "Show recent utilization", Args: cobra.ExactArgs(1),
		Long: "The node keeps samples for one day: every 5 seconds for the last quarter of an hour, and every minute before that."}
	since := cmd.Flags().Duration("since", 5*time.Minute, "how far back, up to 24h")
	step := cmd.Flags().Duration("step", time.Minute, "time per row: a multiple of 5s, or of 1m from one minute on")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		q := api.SampleQuery{From: k.app.Now().Add(-*since), Step: *step}
		s, err := ask(k.app.api, cmd.Context(), api.MetaOf(&o).ID, q)
		if err != nil {
			return err
		}
		return k.app.print(s, func() table { return samplesTable(s) })
	}
	return cmd
}

func samplesTable(s api.Samples) table {
	t := table{{"TIME (UTC)"}}
	rows := 0
	for _, x := range s.Series {
		t[0] = append(t[0], x.Name)
		rows = max(rows, len(x.Values))
	}
	for i := range rows {
		row := []string{s.From.Add(time.Duration(i*int(s.StepSeconds)) * time.Second).UTC().Format(time.TimeOnly)}
		for _, x := range s.Series {
			cell := ""
			if i < len(x.Values) && x.Values[i] != nil {
				cell = formatSample(x.Unit, *x.Values[i])
			}
			row = append(row, cell)
		}
		t = append(t, row)
	}
	return t
}

func formatSample(unit api.SampleSeriesUnit, v float64) string {
	switch unit {
	case api.UnitPercent:
		return strconv.FormatFloat(v, 'f', 1, 64) + "%"
	case api.UnitRequestsPerSecond:
		return strconv.FormatFloat(v, 'f', 1, 64) + "/s"
	}
	text := "0 B"
	if v >= 1 {
		text = formatSize(int64(v))
	}
	if unit == api.UnitBytesPerSecond {
		text += "/s"
	}
	return text
}

// topNames are the series in the columns of top.
var topNames = []string{api.SampleCPU, api.SampleMemory, api.SampleDiskRead, api.SampleDiskWrite, api.SampleReceived, api.SampleSent, api.SampleGPU, api.SampleVRAM}

// instanceUse is the current utilization of an instance: the latest value of each series.
type instanceUse struct {
	ID     string             `json:"id"`
	Name   string             `json:"name"`
	Values map[string]float64 `json:"values"`
	Error  string             `json:"error,omitempty"`
	cells  []string
}

// topCommand shows the current utilization of instances. An instance whose node does not answer
// is listed with the error.
func topCommand(k *kind[api.Instance]) *cobra.Command {
	cmd := &cobra.Command{Use: "top [NAME|ID]...", Short: "Show current utilization of all or the named instances"}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var list []api.Instance
		for _, ref := range args {
			i, err := k.get(cmd.Context(), ref)
			if err != nil {
				return err
			}
			list = append(list, i)
		}
		if len(args) == 0 {
			for i, err := range k.objects().All(cmd.Context(), k.query()) {
				if err != nil {
					return err
				}
				if i.Status.Phase == api.InstanceRunning {
					list = append(list, i)
				}
			}
		}
		uses := []instanceUse{}
		for _, i := range list {
			uses = append(uses, k.app.use(cmd.Context(), i))
		}
		return k.app.print(uses, func() table {
			t := table{append(append([]string{"NAME"}, topTitles...), "NOTE")}
			for _, u := range uses {
				t = append(t, append(append([]string{u.Name}, u.cells...), u.Error))
			}
			return t
		})
	}
	return cmd
}

var topTitles = []string{"CPU", "MEMORY", "DISK READ", "DISK WRITE", "RECEIVED", "SENT", "GPU", "VRAM"}

// recent is the maximum age of the latest value.
const recent = 30 * time.Second

func (a *App) use(ctx context.Context, i api.Instance) instanceUse {
	u := instanceUse{ID: i.Meta.ID, Name: i.Meta.Name, Values: map[string]float64{}, cells: make([]string, len(topNames))}
	s, err := a.api.InstanceSamples(ctx, i.Meta.ID, api.SampleQuery{From: a.Now().Add(-recent), Step: 5 * time.Second})
	if err != nil {
		u.Error = fmt.Sprint(err)
		return u
	}
	for _, x := range s.Series {
		for c, name := range topNames {
			if v, ok := x.Last(); ok && name == x.Name {
				u.Values[name], u.cells[c] = v, formatSample(x.Unit, v)
			}
		}
	}
	return u
}

// tenantsCommand lists the virtual GPUs that are on a GPU now.
func tenantsCommand(k *kind[api.GPU]) *cobra.Command {
	cmd := &cobra.Command{Use: "tenants NAME|ID", Short: "List the virtual GPUs on a GPU and their usage", Args: cobra.ExactArgs(1)}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		g, err := k.get(cmd.Context(), args[0])
		if err != nil {
			return err
		}
		all, err := k.app.api.GPUTenants(cmd.Context(), g.Meta.ID)
		if err != nil {
			return err
		}
		return k.app.print(all, func() table {
			t := table{{"INSTANCE", "SHARE", "VRAM LIMIT", "VRAM RESIDENT", "SWAPPED", "GPU, LAST MINUTE"}}
			for _, x := range all.Items {
				t = append(t, []string{string(x.Instance), fmt.Sprintf("%d%%", x.SharePercent), formatSize(x.VramLimitBytes),
					formatSample(api.UnitBytes, float64(x.VramResidentBytes)), formatSample(api.UnitBytes, float64(x.VramSwappedBytes)), formatSample(api.UnitPercent, x.GpuPercent)})
			}
			return t
		})
	}
	return cmd
}
