package main

// portalRows returns the rows for ui's BenchmarkPortal: the cost of the portal in a browser on
// the same machine, with 20,000 instances.
func portalRows() (rows []row) {
	for _, page := range []struct{ sample, name string }{{"sign-in", "signed out"}, {"dashboard", "signed in"}} {
		bench := "Portal/load/" + page.sample
		rows = append(rows,
			row{name: "portal: first load, " + page.name, bench: key{bench, "kB"}, baselineName: "the most that it may be", baseline: key{bench, "most-kB"}, goalRatio: 1},
			row{name: "portal: until it can be used, " + page.name, bench: key{bench, "ms"}, baselineName: "the same files fetched alone", baseline: key{bench, "files-ms"}, goal: 1500})
	}
	for _, table := range []struct{ sample, name string }{
		{"page", "next page of 25"}, {"filter", "filter to one"}, {"filter-none", "filter to none"}, {"rows=500", "page of 500"},
	} {
		bench := "Portal/table/" + table.sample
		rows = append(rows, row{name: "portal: 20,000 instances, " + table.name, bench: key{bench, "ms"}, baselineName: "the API's answer alone", baseline: key{bench, "API-ms"}})
	}
	for _, scroll := range []struct{ sample, name string }{{"", "500 rows"}, {"-changing", "500 rows, 20 changes a second"}} {
		for _, of := range []struct{ unit, name string }{{"p95-ms", "frames, p95"}, {"worst-ms", "longest frame"}, {"long-tasks-ms", "tasks over 50 ms"}} {
			rows = append(rows, row{
				name: "portal: scroll " + scroll.name + ", " + of.name, bench: key{"Portal/scroll/portal" + scroll.sample, of.unit},
				baselineName: "a plain table of the same", baseline: key{"Portal/scroll/plain" + scroll.sample, of.unit},
			})
		}
	}
	return rows
}
