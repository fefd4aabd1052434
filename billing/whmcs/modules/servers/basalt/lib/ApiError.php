<?php

declare(strict_types=1);

namespace WHMCS\Module\Server\Basalt;

/** What basaltd, or the way to it, has said: words for whoever reads them in WHMCS. */
final class ApiError extends \RuntimeException
{
    /** @param string $apiCode basaltd's own code ("quota_exceeded"), or "unreachable" */
    public function __construct(string $message, public readonly string $apiCode, public readonly int $status = 0)
    {
        parent::__construct($message, $status);
    }
}
