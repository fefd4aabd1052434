package client

import (
	"context"
	"net/http"

	"github.com/basalt-gpu/basalt/api"
)

// Instances are the collection of kind Instance.
func (a *API) Instances() Collection[api.Instance] {
	return Collection[api.Instance]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListInstances(ctx, &api.ListInstancesParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project,
				Node: q.Node, Phase: q.Phase})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetInstance(ctx, ref, &api.GetInstanceParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.Instance) (*http.Response, error) {
			return a.gen.CreateInstance(ctx, &api.CreateInstanceParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Instance) (*http.Response, error) {
			return a.gen.UpdateInstance(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteInstance(ctx, id) },
	}
}

// Volumes are the collection of kind Volume.
func (a *API) Volumes() Collection[api.Volume] {
	return Collection[api.Volume]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListVolumes(ctx, &api.ListVolumesParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetVolume(ctx, ref, &api.GetVolumeParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.Volume) (*http.Response, error) {
			return a.gen.CreateVolume(ctx, &api.CreateVolumeParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Volume) (*http.Response, error) {
			return a.gen.UpdateVolume(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) {
			return a.gen.DeleteVolume(ctx, id, &api.DeleteVolumeParams{})
		},
	}
}

// Images are the collection of kind Image.
func (a *API) Images() Collection[api.Image] {
	return Collection[api.Image]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListImages(ctx, &api.ListImagesParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetImage(ctx, ref, &api.GetImageParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.Image) (*http.Response, error) {
			return a.gen.CreateImage(ctx, &api.CreateImageParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Image) (*http.Response, error) {
			return a.gen.UpdateImage(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteImage(ctx, id) },
	}
}

// Apps are the collection of kind App.
func (a *API) Apps() Collection[api.App] {
	return Collection[api.App]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListApps(ctx, &api.ListAppsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetApp(ctx, ref)
		},
		create: func(ctx context.Context, o api.App) (*http.Response, error) {
			return a.gen.CreateApp(ctx, &api.CreateAppParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.App) (*http.Response, error) {
			return a.gen.UpdateApp(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteApp(ctx, id) },
	}
}

// Flavors are the collection of kind Flavor.
func (a *API) Flavors() Collection[api.Flavor] {
	return Collection[api.Flavor]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListFlavors(ctx, &api.ListFlavorsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetFlavor(ctx, ref)
		},
		create: func(ctx context.Context, o api.Flavor) (*http.Response, error) {
			return a.gen.CreateFlavor(ctx, &api.CreateFlavorParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Flavor) (*http.Response, error) {
			return a.gen.UpdateFlavor(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteFlavor(ctx, id) },
	}
}

// GPUPools are the collection of kind GPUPool.
func (a *API) GPUPools() Collection[api.GPUPool] {
	return Collection[api.GPUPool]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListGPUPools(ctx, &api.ListGPUPoolsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetGPUPool(ctx, ref)
		},
		create: func(ctx context.Context, o api.GPUPool) (*http.Response, error) {
			return a.gen.CreateGPUPool(ctx, &api.CreateGPUPoolParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.GPUPool) (*http.Response, error) {
			return a.gen.UpdateGPUPool(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteGPUPool(ctx, id) },
	}
}

// GPUs are the collection of kind GPU.
func (a *API) GPUs() Collection[api.GPU] {
	return Collection[api.GPU]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListGPUs(ctx, &api.ListGPUsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) { return a.gen.GetGPU(ctx, ref) },
		update: func(ctx context.Context, id string, o api.GPU) (*http.Response, error) {
			return a.gen.UpdateGPU(ctx, id, o)
		},
	}
}

// Nodes are the collection of kind Node.
func (a *API) Nodes() Collection[api.Node] {
	return Collection[api.Node]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListNodes(ctx, &api.ListNodesParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) { return a.gen.GetNode(ctx, ref) },
		update: func(ctx context.Context, id string, o api.Node) (*http.Response, error) {
			return a.gen.UpdateNode(ctx, id, o)
		},
	}
}

// Organizations are the collection of kind Organization.
func (a *API) Organizations() Collection[api.Organization] {
	return Collection[api.Organization]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListOrganizations(ctx, &api.ListOrganizationsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetOrganization(ctx, ref)
		},
		create: func(ctx context.Context, o api.Organization) (*http.Response, error) {
			return a.gen.CreateOrganization(ctx, &api.CreateOrganizationParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Organization) (*http.Response, error) {
			return a.gen.UpdateOrganization(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteOrganization(ctx, id) },
	}
}

// Projects are the collection of kind Project.
func (a *API) Projects() Collection[api.Project] {
	return Collection[api.Project]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListProjects(ctx, &api.ListProjectsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetProject(ctx, ref, &api.GetProjectParams{Organization: q.Organization})
		},
		create: func(ctx context.Context, o api.Project) (*http.Response, error) {
			return a.gen.CreateProject(ctx, &api.CreateProjectParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Project) (*http.Response, error) {
			return a.gen.UpdateProject(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteProject(ctx, id) },
	}
}

// APIKeys are the collection of kind APIKey.
func (a *API) APIKeys() Collection[api.APIKey] {
	return Collection[api.APIKey]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListAPIKeys(ctx, &api.ListAPIKeysParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization, Project: q.Project})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetAPIKey(ctx, ref, &api.GetAPIKeyParams{Organization: q.Organization, Project: q.Project})
		},
		create: func(ctx context.Context, o api.APIKey) (*http.Response, error) {
			return a.gen.CreateAPIKey(ctx, &api.CreateAPIKeyParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.APIKey) (*http.Response, error) {
			return a.gen.UpdateAPIKey(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteAPIKey(ctx, id) },
	}
}

// UsageRecords are the collection of kind UsageRecord, in the order of their
// ends. It only has lists.
func (a *API) UsageRecords() Collection[api.UsageRecord] {
	return a.UsageRecordsOf(api.RecordQuery{})
}

// UsageRecordsOf are those of a meter, resource and period, as far as they are
// given.
func (a *API) UsageRecordsOf(of api.RecordQuery) Collection[api.UsageRecord] {
	return Collection[api.UsageRecord]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListUsageRecords(ctx, &api.ListUsageRecordsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Organization: q.Organization, Project: q.Project,
				Meter: of.Meter, Resource: of.Resource, From: of.From, To: of.To})
		},
	}
}

// Invoices are the collection of kind Invoice.
func (a *API) Invoices() Collection[api.Invoice] {
	return Collection[api.Invoice]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListInvoices(ctx, &api.ListInvoicesParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetInvoice(ctx, ref, &api.GetInvoiceParams{Organization: q.Organization})
		},
	}
}

// CreditNotes are the collection of kind CreditNote.
func (a *API) CreditNotes() Collection[api.CreditNote] {
	return Collection[api.CreditNote]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListCreditNotes(ctx, &api.ListCreditNotesParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetCreditNote(ctx, ref, &api.GetCreditNoteParams{Organization: q.Organization})
		},
		create: func(ctx context.Context, o api.CreditNote) (*http.Response, error) {
			return a.gen.CreateCreditNote(ctx, &api.CreateCreditNoteParams{}, o)
		},
	}
}

// Payments are the collection of kind Payment.
func (a *API) Payments() Collection[api.Payment] {
	return Collection[api.Payment]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListPayments(ctx, &api.ListPaymentsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetPayment(ctx, ref, &api.GetPaymentParams{Organization: q.Organization})
		},
		create: func(ctx context.Context, o api.Payment) (*http.Response, error) {
			return a.gen.CreatePayment(ctx, &api.CreatePaymentParams{}, o)
		},
	}
}

// Budgets are the collection of kind Budget.
func (a *API) Budgets() Collection[api.Budget] {
	return Collection[api.Budget]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListBudgets(ctx, &api.ListBudgetsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort, Organization: q.Organization})
		},
		get: func(ctx context.Context, ref string, q Query) (*http.Response, error) {
			return a.gen.GetBudget(ctx, ref, &api.GetBudgetParams{Organization: q.Organization})
		},
		create: func(ctx context.Context, o api.Budget) (*http.Response, error) {
			return a.gen.CreateBudget(ctx, &api.CreateBudgetParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Budget) (*http.Response, error) {
			return a.gen.UpdateBudget(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteBudget(ctx, id) },
	}
}

// PriceBooks are the collection of kind PriceBook.
func (a *API) PriceBooks() Collection[api.PriceBook] {
	return Collection[api.PriceBook]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListPriceBooks(ctx, &api.ListPriceBooksParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetPriceBook(ctx, ref)
		},
		create: func(ctx context.Context, o api.PriceBook) (*http.Response, error) {
			return a.gen.CreatePriceBook(ctx, &api.CreatePriceBookParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.PriceBook) (*http.Response, error) {
			return a.gen.UpdatePriceBook(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeletePriceBook(ctx, id) },
	}
}

// Migrations are the collection of kind Migration.
func (a *API) Migrations() Collection[api.Migration] {
	return Collection[api.Migration]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListMigrations(ctx, &api.ListMigrationsParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetMigration(ctx, ref)
		},
		create: func(ctx context.Context, o api.Migration) (*http.Response, error) {
			return a.gen.CreateMigration(ctx, &api.CreateMigrationParams{}, o)
		},
		update: func(ctx context.Context, id string, o api.Migration) (*http.Response, error) {
			return a.gen.UpdateMigration(ctx, id, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteMigration(ctx, id) },
	}
}

// JoinTokens are the collection of kind JoinToken.
func (a *API) JoinTokens() Collection[api.JoinToken] {
	return Collection[api.JoinToken]{
		list: func(ctx context.Context, q Query) (*http.Response, error) {
			return a.gen.ListJoinTokens(ctx, &api.ListJoinTokensParams{Limit: q.Limit, Continue: q.Continue, Name: q.Name, Search: q.Search, Sort: q.Sort})
		},
		get: func(ctx context.Context, ref string, _ Query) (*http.Response, error) {
			return a.gen.GetJoinToken(ctx, ref)
		},
		create: func(ctx context.Context, o api.JoinToken) (*http.Response, error) {
			return a.gen.CreateJoinToken(ctx, &api.CreateJoinTokenParams{}, o)
		},
		remove: func(ctx context.Context, id string) (*http.Response, error) { return a.gen.DeleteJoinToken(ctx, id) },
	}
}
