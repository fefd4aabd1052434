<?php

declare(strict_types=1);

use WHMCS\Module\Server\Basalt\Order;

require_once __DIR__ . '/whmcs.php';

/*
 * Calls one function of the module like WHMCS, for tests in Go: its name is the
 * argument, its parameters are JSON on standard input, its result JSON on standard
 * output. "metrics" returns the service's totals by name.
 */
$params = json_decode((string) stream_get_contents(STDIN), true, 512, JSON_THROW_ON_ERROR);
$params['model'] = new ServiceModel();
if ($argv[1] === 'metrics') {
    $answer = [];
    foreach (basalt_MetricProvider($params)->tenantUsage(Order::username($params['serviceid'])) as $metric) {
        $answer[$metric->systemName()] = $metric->usage()->value();
    }
    $answer = (object) $answer;
} else {
    $answer = ('basalt_' . $argv[1])($params);
}
echo json_encode($answer, JSON_THROW_ON_ERROR | JSON_PRESERVE_ZERO_FRACTION);
