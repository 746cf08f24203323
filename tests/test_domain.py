"""A domain for each graph: no two at once, freed at the end, found by a second terminal."""

from __future__ import annotations

import subprocess
import sys
import uuid

import pytest

from failure_dialogue import domain
from failure_dialogue.errors import ConfigError, SetupError


@pytest.fixture(autouse=True)
def own_claims(monkeypatch):
    """Claims that no other process looks at."""
    monkeypatch.setattr(domain, "_NAME", f"test/{uuid.uuid4()}")
    monkeypatch.delenv("ROS_DOMAIN_ID", raising=False)


def test_two_claims_never_share_a_domain():
    first, second = domain.claim_domain("sim"), domain.claim_domain("sim")
    assert first.domain_id != second.domain_id
    assert domain.claimed_domains("sim") == [first.domain_id, second.domain_id]
    first.release()
    second.release()
    assert domain.claimed_domains("sim") == []


def test_a_claim_of_another_process_counts_and_ends_with_it():
    code = (f"from failure_dialogue import domain; domain._NAME = {domain._NAME!r}\n"
            "claim = domain.claim_domain('sim'); print(claim.domain_id, flush=True); input()")
    with subprocess.Popen([sys.executable, "-c", code], text=True, stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as other:
        taken = int(other.stdout.readline())
        assert domain.claimed_domains("sim") == [taken]
        mine = domain.claim_domain("test")
        assert mine.domain_id != taken
        other.kill()
        other.wait()
    assert domain.claimed_domains("sim") == []
    again = domain.claim_domain("test")
    assert again.domain_id == taken
    for claim in (mine, again):
        claim.release()


def test_all_taken_says_what_to_do(monkeypatch):
    monkeypatch.setattr(domain, "DOMAINS", range(1, 2))
    claim = domain.claim_domain("sim")
    with pytest.raises(SetupError, match="set ROS_DOMAIN_ID yourself"):
        domain.claim_domain("sim")
    claim.release()


def test_a_second_terminal_joins_the_running_simulation_and_not_a_test(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "")
    other, running = domain.claim_domain("test"), domain.claim_domain("sim")
    assert domain.join_running_graph() == running.domain_id
    for claim in (other, running):
        claim.release()


def test_two_running_simulations_are_not_guessed_between():
    claims = [domain.claim_domain("sim") for _ in range(2)]
    with pytest.raises(SetupError, match=f"domains {claims[0].domain_id}, {claims[1].domain_id}"):
        domain.join_running_graph()
    for claim in claims:
        claim.release()


def test_a_stated_domain_is_kept_and_nonsense_refused(monkeypatch):
    monkeypatch.setenv("ROS_DOMAIN_ID", "33")
    assert domain.join_running_graph() == 33
    monkeypatch.setenv("ROS_DOMAIN_ID", "kitchen")
    with pytest.raises(ConfigError, match="kitchen"):
        domain.join_running_graph()
