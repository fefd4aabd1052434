<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/** Client of basaltd's API. Every call has a short time limit, and is in WHMCS's module log without its secrets. */
final class Client
{
    private const CONNECT_SECONDS = 4;
    private const CALL_SECONDS = 15;
    private const MOST_BYTES = 32 << 20;

    /** @param array<int,string> $secrets further secrets that the module log must not show */
    public function __construct(private readonly Server $server, private readonly array $secrets = [])
    {
    }

    /**
     * @param array<string,mixed>|null $body
     * @return array<string,mixed>
     */
    public function call(string $action, string $method, string $path, ?array $body = null, int $seconds = self::CALL_SECONDS): array
    {
        $sent = $body === null ? '' : json_encode($body, JSON_THROW_ON_ERROR | JSON_INVALID_UTF8_SUBSTITUTE);
        [$status, $raw, $problem] = $this->exchange($method, $path, $body === null ? null : $sent, $seconds);
        $answer = json_decode($raw, true, 64, JSON_BIGINT_AS_STRING);
        $this->log($action, "$method $path\n$sent", $raw !== '' ? $raw : $problem, [$body, $answer]);
        if ($problem !== '') {
            throw new ApiError($problem, 'unreachable');
        }
        if (!is_array($answer)) {
            throw new ApiError("{$this->server->url} answers, but not as basaltd does (status $status): are hostname, port and \"Secure\" of the server right?", 'unreachable', $status);
        }
        if ($status >= 400) {
            throw self::refusal($answer, $status);
        }
        return $answer;
    }

    /**
     * Returns all items of a list, page by page.
     *
     * @param array<string,string|int> $query
     * @return \Generator<int,array<string,mixed>>
     */
    public function all(string $action, string $path, array $query = []): \Generator
    {
        for ($pages = 0; $pages < 1000; $pages++) {
            $page = $this->call($action, 'GET', $path . ($query ? '?' . http_build_query($query) : ''), null, 30);
            foreach ($page['items'] ?? [] as $item) {
                yield $item;
            }
            if (($page['continue'] ?? '') === '') {
                return;
            }
            $query['continue'] = $page['continue'];
        }
    }

    /** @return array{int,string,string} status, body, and the error of the connection */
    private function exchange(string $method, string $path, ?string $body, int $seconds): array
    {
        $headers = ['Authorization: Bearer ' . $this->server->key, 'Accept: application/json'];
        $curl = curl_init($this->server->url . $path);
        $raw = '';
        $options = [
            CURLOPT_CUSTOMREQUEST => $method,
            CURLOPT_CONNECTTIMEOUT => self::CONNECT_SECONDS,
            CURLOPT_TIMEOUT => $seconds,
            CURLOPT_PROTOCOLS => CURLPROTO_HTTP | CURLPROTO_HTTPS,
            CURLOPT_FOLLOWLOCATION => false,
            CURLOPT_WRITEFUNCTION => static function ($_, string $part) use (&$raw): int {
                if (strlen($raw) + strlen($part) > self::MOST_BYTES) {
                    return 0;
                }
                $raw .= $part;
                return strlen($part);
            },
        ];
        if ($body !== null) {
            $options[CURLOPT_POSTFIELDS] = $body;
            $headers[] = 'Content-Type: application/json';
        }
        if ($this->server->ca !== '') {
            $options[CURLOPT_CAINFO] = $this->server->ca;
        }
        $options[CURLOPT_HTTPHEADER] = $headers;
        curl_setopt_array($curl, $options);
        $ok = curl_exec($curl);
        $status = (int) curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        $number = curl_errno($curl);
        $problem = $ok === false ? $this->words($number, curl_error($curl)) : '';
        curl_close($curl);
        return [$status, $raw, $problem];
    }

    private function words(int $number, string $error): string
    {
        $where = $this->server->url;
        return match (true) {
            $number === CURLE_OPERATION_TIMEOUTED => "basaltd at $where has not answered in time. What was asked for may have been done: it is safe to do it again.",
            in_array($number, [CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT], true) => "basaltd at $where cannot be reached: is it running, and may this host reach that port? ($error)",
            in_array($number, [CURLE_SSL_CACERT, CURLE_SSL_PEER_CERTIFICATE, CURLE_SSL_CACERT_BADFILE], true) => "the certificate of $where is not trusted here: put the cluster's ca.pem on this host and ca=FILE into the server's access hash. ($error)",
            default => "the connection to basaltd at $where broke: it is safe to try again. ($error)",
        };
    }

    /** @param array<string,mixed> $answer */
    private static function refusal(array $answer, int $status): ApiError
    {
        $text = static fn (string $name): string => is_string($answer[$name] ?? null) ? $answer[$name] : '';
        $code = $text('code') ?: 'internal';
        if ($status === 401) {
            return new ApiError('basaltd does not know this API key: make one with "basalt api-key create whmcs --role reseller" and put it into the server\'s access hash.', $code, $status);
        }
        if ($status === 403 && str_contains($text('detail'), 'the role ')) {
            return new ApiError('the API key may not do this: its role has to be reseller or operator. (' . $text('detail') . ')', $code, $status);
        }
        $words = [];
        foreach (is_array($answer['errors'] ?? null) ? $answer['errors'] : [] as $one) {
            $words[] = self::sentence(($one['field'] ?? '') . ': ' . ($one['detail'] ?? ''), $one['hint'] ?? '');
        }
        return new ApiError($words !== [] ? implode('; ', $words) : self::sentence($text('detail') ?: "status $status", $text('hint')), $code, $status);
    }

    private static function sentence(string $what, string $hint): string
    {
        return $hint !== '' ? "$what ($hint)" : $what;
    }

    /** @param array<mixed> $documents whose tokens and passwords the log must not show */
    private function log(string $action, string $request, string $response, array $documents): void
    {
        if (!function_exists('logModuleCall')) {
            return;
        }
        $secrets = array_merge([$this->server->key], $this->secrets);
        foreach ($documents as $d) {
            foreach (['token', 'password', 'secret'] as $name) {
                if (is_array($d) && is_string($d[$name] ?? null)) {
                    $secrets[] = $d[$name];
                }
            }
        }
        $secrets = array_values(array_filter($secrets, static fn (string $s): bool => $s !== ''));
        // Also in the forms that they have in JSON and in a URL.
        foreach ($secrets as $s) {
            array_push($secrets, trim((string) json_encode($s), '"'), rawurlencode($s));
        }
        $short = static fn (string $s): string => strlen($s) > 20000 ? substr($s, 0, 20000) . ' ...' : $s;
        logModuleCall('basalt', $action, $short($request), $short($response), '', array_values(array_unique($secrets)));
    }
}
