package server

import (
	"context"

	"github.com/basalt-gpu/basalt/api"
)

// putSettings writes the settings of the cluster that the first command contains, with the
// other commands, unless they were changed since the revision that the first command
// expects; 0 means that they were never changed. what names them in errors.
func (h *handlers) putSettings(ctx context.Context, what string, commands ...api.Command) (api.Object, error) {
	out, err := h.opts.Store.Apply(ctx, api.Batch{At: h.opts.Now().UTC(), Commands: commands})
	if err == nil {
		return out[0], nil
	}
	switch code, revision := api.CodeOf(err), commands[0].Expect; {
	case code == api.CodeNotFound && revision > 0:
		err = api.Errorf(api.CodeConflict, "%s: the revision is 0, want %d", what, revision).At("revision").WithHint("GET it again")
	case code == api.CodeExists && revision == 0:
		err = api.Errorf(api.CodeConflict, "%s: changed since revision 0", what).At("revision").WithHint("GET it again")
	}
	return api.Object{}, err
}
