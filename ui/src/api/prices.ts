// Queries and changes of the pages about prices.
import { keepPreviousData, useQuery } from '@tanstack/react-query';
import { api, ApiError, ok, type Schemas } from './client';
import type { Period } from './queries';
import { may, type Session } from './session';

export type Book = Schemas['PriceBook'];

/** ownsBook reports whether a session may change a price book: an operator any, a reseller its own. */
export const ownsBook = (session: Session, book: Book) =>
  may(session, 'operator') || (!!book.meta.organization && book.meta.organization === session.organization);

/** useBook returns a price book, or null if it was deleted. */
export const useBook = (id: string) =>
  useQuery({
    queryKey: ['PriceBook', 'one', id],
    queryFn: async ({ signal }) => {
      try {
        return await ok(api.GET('/v1/price-books/{id}', { params: { path: { id } }, signal }));
      } catch (e) {
        if (e instanceof ApiError && e.code === 'not_found') return null;
        throw e;
      }
    },
  });

export const useSimulation = (book: Book, period: Period, on: boolean) =>
  useQuery({
    queryKey: ['simulation', book.meta.id, book.meta.generation, period],
    enabled: on,
    queryFn: ({ signal }) =>
      ok(
        api.GET('/v1/price-books/{id}/simulation', {
          params: { path: { id: book.meta.id ?? '' }, query: { ...period } },
          signal,
        }),
      ),
  });

/** useQuote returns what a machine costs in a month; the request is given as JSON text. */
export const useQuote = (book: Book, request: string) =>
  useQuery({
    queryKey: ['quote', book.meta.id, book.meta.generation, request],
    queryFn: ({ signal }) =>
      ok(
        api.POST('/v1/price-books/{id}/quote', {
          params: { path: { id: book.meta.id ?? '' } },
          body: JSON.parse(request) as Schemas['PriceQuoteRequest'],
          signal,
        }),
      ),
    placeholderData: keepPreviousData,
    staleTime: 60_000,
    retry: false,
  });

/** useVersions returns the versions of a price book, newest first; one page at most. */
export const useVersions = (book: Book) =>
  useQuery({
    queryKey: ['price-versions', book.meta.id, book.meta.generation],
    queryFn: ({ signal }) =>
      ok(
        api.GET('/v1/price-books/{id}/versions', {
          params: { path: { id: book.meta.id ?? '' }, query: { limit: 1000 } },
          signal,
        }),
      ),
  });
