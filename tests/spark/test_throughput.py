"""How much quicker a fleet is than one state a key: reported, since no test asserts a time."""

from examples import spark_throughput


def test_reports_the_throughput_of_a_fleet_beside_that_of_one_state_a_key(spark, tmp_path, capsys):
    speed = spark_throughput.measure(spark, tmp_path, keys=2000, files=1, hours=1)
    assert speed["fleet"] > 0
    with capsys.disabled():
        print(f"\n2000 keys, 2 cores: {spark_throughput.report(speed)}")  # noqa: T201
