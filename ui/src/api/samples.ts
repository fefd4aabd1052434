// Recent measurements. They are kept on one node and not in the store, so no watch reports them; they are polled
// while shown.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ok } from './client';

export interface Range {
  name: '15m' | '1h' | '24h';
  seconds: number;
  step: number;
}

export type Measured = 'instances' | 'nodes' | 'gpus';

const every = 5000; // ms: the interval of new values

const read = (of: Measured, id: string, range: Range, signal: AbortSignal) => {
  const from = new Date(Date.now() - range.seconds * 1000).toISOString();
  const params = { path: { id }, query: { from, step: range.step } };
  switch (of) {
    case 'instances':
      return ok(api.GET('/v1/instances/{id}/samples', { params, signal }));
    case 'nodes':
      return ok(api.GET('/v1/nodes/{id}/samples', { params, signal }));
    case 'gpus':
      return ok(api.GET('/v1/gpus/{id}/samples', { params, signal }));
  }
};

export const useSamples = (of: Measured, id: string, range: Range) =>
  useQuery({
    queryKey: ['samples', of, id, range.name],
    queryFn: ({ signal }) => read(of, id, range, signal),
    refetchInterval: every,
    placeholderData: keepPreviousData,
    retry: false,
  });

export const useTenants = (gpu: string) =>
  useQuery({
    queryKey: ['tenants', gpu],
    queryFn: ({ signal }) => ok(api.GET('/v1/gpus/{id}/tenants', { params: { path: { id: gpu } }, signal })),
    refetchInterval: every,
    retry: false,
  });

export const useNode = (id: string) =>
  useQuery({
    queryKey: ['Node', 'one', id],
    queryFn: ({ signal }) => ok(api.GET('/v1/nodes/{id}', { params: { path: { id } }, signal })),
  });
