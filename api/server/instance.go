package server

import (
	"context"
	"slices"

	"github.com/basalt-gpu/basalt/api"
)

// CreateInstance creates the instance and its root volume in one batch.
func (h *handlers) CreateInstance(ctx context.Context, r in[api.CreateInstanceParams, api.Instance]) (*api.Instance, error) {
	m, placeErr := h.place(ctx, api.KindInstance, r.Body.Meta)
	if placeErr != nil && !ofMeta(placeErr) {
		return nil, placeErr
	}
	want, app, appErr := h.fromApp(ctx, r.Body.Spec)
	var keyErr error
	if len(want.SSHKeys) <= api.MaxInstanceKeys { // more are refused below
		want.SSHKeys, keyErr = h.authorizedKeys(ctx, want.SSHKeys, nil)
	}
	media, mediaErr := h.media(ctx, m, nil, want.Media)
	want.Media = media
	want = h.forImage(ctx, m, want, app)
	spec, flavor, image, err := h.instanceSpec(ctx, m, want)
	if err := api.Join(placeErr, appErr, keyErr, mediaErr, h.diskPool(ctx, "spec.storagePool", want.StoragePool), ofApp(err, r.Body.Spec, want, appErr != nil)); err != nil {
		return nil, err
	}
	if err := app.Needs.Met(spec, flavor.Spec); err != nil {
		return nil, err
	}
	if spec.Rescue != "" {
		return nil, api.Errorf(api.CodeInvalid, "a new instance has nothing to rescue").At("spec.rescue").WithHint("leave it out; spec.media boots a medium as long as no system is installed")
	}
	if spec.RootVolume != "" {
		return nil, api.Errorf(api.CodeInvalid, "only a reinstall names a root volume").At("spec.rootVolume").WithHint("leave it out: a new instance has a new root volume")
	}
	if image.Meta.DeletedAt != nil || image.Status.Phase == api.ImageFailed {
		return nil, api.Errorf(api.CodeState, "image %s cannot be used: its import failed or it is being deleted", image.Meta.Name).At("spec.image").WithHint("%s", image.Status.Cause.Text(image.Status.LastError))
	}
	if len(spec.Networks) == 0 {
		if spec.Networks, err = h.firstNetwork(ctx, m); err != nil {
			return nil, err
		}
	}
	if err = h.freeAddresses(ctx, m, spec.Networks); err != nil {
		return nil, err
	}
	if err := api.Join(h.inTime(spec), h.refused(ctx, m, spec)); err != nil {
		return nil, err
	}
	id := newID(api.KindInstance)
	root, err := rootVolume(m, api.InstanceID(id), spec, flavor, image)
	if err != nil {
		return nil, err
	}
	in, err := create[api.Instance](ctx, h, api.KindInstance, id, m, spec, r.Params.IdempotencyKey, root)
	if err != nil {
		return nil, err
	}
	gateway := h.opts.SSHGateway != nil && image.Spec.DefaultUser != "" && len(spec.Networks) > 0
	in.Warnings = api.InstanceWarnings(spec, image.Meta.Name, abilitiesOf(image, app), gateway)
	return &in, h.wouldWait(ctx, &in)
}

// abilitiesOf returns what is known of an image that an instance is created from, with
// an app or an empty one.
func abilitiesOf(image api.Image, app api.AppSpec) api.ImageAbilities {
	if image.Meta.Name == app.Image { // the app's abilities hold for its own image only
		return image.Spec.Abilities.Or(app.Abilities)
	}
	return image.Spec.Abilities
}

// forImage fills in what the image of a new instance decides, or without one its first
// medium. instanceSpec reports an image that does not exist.
func (h *handlers) forImage(ctx context.Context, m api.Meta, s api.InstanceSpec, app api.AppSpec) api.InstanceSpec {
	of := s.Image
	if of == "" && len(s.Media) > 0 {
		of = s.Media[0]
	}
	if of == "" {
		return s
	}
	image, err := h.image(ctx, m, string(of))
	if err != nil {
		return s
	}
	return s.ForImage(abilitiesOf(image, app))
}

// rootVolume returns the command that creates an instance's root volume. Its name is
// derived from the ID, so that it does not occupy a name in the project.
func rootVolume(m api.Meta, id api.InstanceID, spec api.InstanceSpec, f api.Flavor, image api.Image) (api.Command, error) {
	size := spec.RootBytes
	if size == 0 {
		size = f.Spec.RootBytes
	}
	if least := image.Status.VirtualBytes; size != 0 && size < least {
		return api.Command{}, api.Errorf(api.CodeInvalid, "root volume of %d bytes is too small for image %s: want at least %d bytes", size, image.Meta.Name, least).
			At("spec.rootBytes").WithHint("request a larger root volume, or choose a larger flavor")
	}
	if size == 0 && spec.Image == "" {
		return api.Command{}, api.Errorf(api.CodeInvalid, "the root volume of an instance without an image needs a size").At("spec.rootBytes").
			WithHint("request a size, or choose a flavor with one")
	}
	volume := api.VolumeSpec{SizeBytes: max(size, image.Status.VirtualBytes), Image: spec.Image, Instance: id, Root: true, Pool: spec.StoragePool}
	return api.Command{
		Op: api.OpPutSpec, Kind: api.KindVolume, ID: newID(api.KindVolume), Name: string(id) + "-root",
		Organization: m.Organization, Project: m.Project, Finalizers: []string{api.FinalizerAgent},
		Data: api.Encode(volume), Uses: volume.Uses(),
	}, nil
}

// instanceSpec fills in defaults, replaces names with IDs and validates.
func (h *handlers) instanceSpec(ctx context.Context, m api.Meta, s api.InstanceSpec) (api.InstanceSpec, api.Flavor, api.Image, error) {
	var flavor api.Flavor
	var image api.Image
	s = api.DefaultInstance(s)
	invalid := api.ValidateInstance(s)
	var flavorErr, pagesErr, cpuErr, imageErr, poolErr, networkErr error
	if s.Flavor != "" {
		flavor, flavorErr = h.flavor(ctx, string(s.Flavor))
		s.Flavor = api.FlavorID(flavor.Meta.ID)
		pagesErr, cpuErr = s.CheckHugePages(flavor.Spec), s.CheckCPUPolicy(flavor.Spec)
	}
	if s.Image != "" {
		image, imageErr = h.diskImage(ctx, m, string(s.Image))
		s.Image = api.ImageID(image.Meta.ID)
	}
	if s.Vgpu != nil {
		poolErr = h.pool(ctx, "spec.vgpu.pool", s.Vgpu.Pool)
	}
	if !faulty(invalid, "spec.networks") {
		s.Networks, networkErr = h.networksOf(ctx, m, s.Networks)
	}
	return s, flavor, image, api.Join(invalid, flavorErr, pagesErr, cpuErr, imageErr, poolErr, networkErr)
}

// changedInstance returns the spec of a changed instance; a new flavor or vGPU takes
// effect while it is stopped.
func (h *handlers) changedInstance(ctx context.Context, _ api.Meta, old *api.Instance, s api.InstanceSpec) (api.InstanceSpec, error) {
	if s.Power == "" { // left out: unchanged, so that a file can be applied again
		s.Power = old.Spec.Power
	}
	if s.Restarts == 0 {
		s.Restarts = old.Spec.Restarts
	}
	if s.RootVolume == "" {
		s.RootVolume = old.Spec.RootVolume
	}
	if len(s.Networks) == 0 { // left out: unchanged, which may be the default
		s.Networks = old.Spec.Networks
	}
	s = s.KeepMachine(old.Spec)
	if s.UserData == "" { // it is never shown, so it is left out when an instance is read and written back
		s.UserData = old.Spec.UserData
	}
	if len(s.SSHKeys) <= api.MaxInstanceKeys {
		keys, err := h.authorizedKeys(ctx, s.SSHKeys, old.Spec.SSHKeys)
		if err != nil {
			return s, err
		}
		s.SSHKeys = keys
	}
	s, err := h.sameApp(ctx, old.Spec, s)
	if err != nil {
		return s, err
	}
	if s.Media, err = h.media(ctx, old.Meta, old.Spec.Media, s.Media); err != nil {
		return s, err
	}
	if s.Rescue != "" && s.Rescue != old.Spec.Rescue {
		if s.Rescue, err = h.medium(ctx, old.Meta, s.Rescue, "spec.rescue"); err != nil {
			return s, err
		}
	}
	if s, _, _, err = h.instanceSpec(ctx, old.Meta, s); err != nil {
		return s, err
	}
	if err := h.changedNetworks(ctx, *old, s.Networks); err != nil {
		return s, err
	}
	if was := old.Spec.QueueUntil; s.QueueUntil != nil && (was == nil || !was.Equal(*s.QueueUntil)) {
		if err := h.inTime(s); err != nil {
			return s, err
		}
	}
	if err := api.ChangeInstance(old.Spec, s); err != nil {
		return s, err
	}
	return s, h.resizeRefused(ctx, *old, s)
}

// DeleteInstance detaches its data volumes and floating IPs, and removes the instance
// from load balancers. The planner deletes its root volume with it.
func (h *handlers) DeleteInstance(ctx context.Context, r in[none, none]) (*api.Instance, error) {
	o, err := h.own(ctx, api.KindInstance, r.ID)
	if err != nil {
		return nil, err
	}
	var detach []api.Command
	var root api.Object
	var broken error
	err = h.each(ctx, api.ListQuery{Kind: api.KindVolume, Project: o.Meta.Project}, func(x api.Object) bool {
		v, err := api.Decode[api.Volume](x)
		if err != nil {
			broken = err
			return false
		}
		if string(v.Spec.Instance) == o.Meta.ID && v.Spec.Root {
			root = x
		}
		if string(v.Spec.Instance) == o.Meta.ID && !v.Spec.Root && v.Meta.DeletedAt == nil {
			v.Spec.Instance = ""
			detach = append(detach, api.Command{Op: api.OpPutSpec, Kind: api.KindVolume, ID: v.Meta.ID,
				Expect: v.Meta.Revision, Labels: v.Meta.Labels, Data: api.Encode(v.Spec)})
		}
		return true
	})
	if err == nil {
		err = broken
	}
	if err != nil {
		return nil, err
	}
	if err := h.noSnapshots(ctx, "delete", o.Meta, root.Meta); err != nil {
		return nil, err
	}
	loose, err := h.unplug(ctx, o.Meta)
	if err != nil {
		return nil, err
	}
	entered, err := h.forgetSSH(ctx, api.Instance{Meta: o.Meta})
	if err != nil {
		return nil, err
	}
	in, err := remove[api.Instance](ctx, h, api.KindInstance, o.Meta.ID, slices.Concat(detach, loose, entered)...)
	return &in, err
}
